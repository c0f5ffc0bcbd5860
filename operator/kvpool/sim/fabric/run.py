"""Runs hand-offs through a fabric, each over the spine that a rule of `kvpool.plan.ports` gives it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvpool.plan.ports.spines import Coordinator, View
from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.fabric.sharing import SharedLinks
from kvpool.sim.fabric.topology import LeafSpine
from kvpool.sim.fabric.transfers import Transfer
from kvpool.sim.streams import Stream


@dataclass(frozen=True, slots=True)
class Completed:
    """One hand-off that ended."""

    transfer: Transfer
    ended_ns: int

    @property
    def completion_ns(self) -> int:
        """Flow completion time."""
        return self.ended_ns - self.transfer.ready_ns

    @property
    def first_token_ns(self) -> int:
        """From the request's arrival to the end of its hand-off: prefill queue, prefill, transfer."""
        return self.ended_ns - self.transfer.arrived_ns


@dataclass(frozen=True, slots=True)
class Chooser:
    """How hand-offs get their spines."""

    view: View
    shortest_ns: int = 0
    """Hand-offs that would take less, alone, are not asked for and go anywhere."""


def run(
    fabric: LeafSpine, transfers: Iterable[Transfer], chooser: Chooser, stream: Stream
) -> Sequence[Completed]:
    """Run hand-offs, given in the order in which they begin; returns them in the order in which they end."""
    links = SharedLinks(fabric.capacities())
    coordinator = Coordinator(fabric.leaves, fabric.spines)
    below = stream.below
    under_way: dict[int, Transfer] = {}
    done: list[Completed] = []

    def finish_until(limit_ns: int | None) -> None:
        while (following := links.next_finish()) is not None:
            at_ns, number = following
            if limit_ns is not None and at_ns > limit_ns:
                return
            links.end(number, at_ns)
            coordinator.ended(number)
            done.append(Completed(under_way.pop(number), at_ns))

    for number, transfer in enumerate(transfers):
        finish_until(transfer.ready_ns)
        here, there = fabric.leaf_of(transfer.source), fabric.leaf_of(transfer.destination)
        alone_ns = transfer.size_bytes * NS_PER_SECOND // fabric.nic_bytes_per_second
        view = chooser.view if alone_ns >= chooser.shortest_ns else View.NONE
        spine = coordinator.choose_by(view, transfer.source, here, there, below)
        assert spine is not None, "no link of this fabric is ever lost"
        if here != there:
            coordinator.started(number, here, there, spine)
        under_way[number] = transfer
        links.start(
            number,
            fabric.path(transfer.source, transfer.destination, spine),
            transfer.size_bytes,
            transfer.ready_ns,
        )
    finish_until(None)
    return done
