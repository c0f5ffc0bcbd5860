"""Watches the hosts of the guard group, and answers for this one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvpool.rules.lease import PeerState, PeerWord
from kvpool_agent.lease import Member, boottime_seconds
from kvpool_agent.timing import MOST_WITNESSES
from kvpool_keeper.answer import Answer
from kvpool_keeper.probe import ask_peers, hosts_that_answer

KUBELET_PORT = 10250


@dataclass(frozen=True)
class Sighting:
    """The newest probe of one peer."""

    reached: bool
    state: PeerState | None
    at_seconds: float
    """CLOCK_BOOTTIME when the question was sent."""


class PeerWatch:
    """What this node knows of its peers."""

    def __init__(self, node: str, kubelet_port: int = KUBELET_PORT) -> None:
        self._node = node
        self._kubelet_port = kubelet_port
        self._sightings: dict[str, Sighting] = {}

    @property
    def sightings(self) -> dict[str, Sighting]:
        """The newest probe of each peer, by node name."""
        return dict(self._sightings)

    def words(self) -> dict[str, PeerWord]:
        """What peers said of their own leases."""
        return {
            node: PeerWord(seen.state, seen.at_seconds)
            for node, seen in self._sightings.items()
            if seen.state is not None
        }

    async def look(self, members: Sequence[Member], *, everybody: bool) -> None:
        """Probe the peers that this node witnesses, or all. Peers that left the group are forgotten."""
        asked_at_seconds = boottime_seconds()
        chosen = {
            member.node: member
            for member in (
                [m for m in members if m.node != self._node] if everybody else witnessed(self._node, members)
            )
        }
        probes = await ask_peers({node: member.peer_address for node, member in chosen.items()})
        current = {member.node for member in members}
        self._sightings = {node: seen for node, seen in self._sightings.items() if node in current}
        silent = {node: chosen[node].host_address for node, probe in probes.items() if not probe.reached}
        # The probe of last resort: the kubelet's port on the host's address.
        up = await hosts_that_answer(silent, self._kubelet_port)
        for node, probe in probes.items():
            self._sightings[node] = Sighting(probe.reached or node in up, probe.state, asked_at_seconds)


def witnessed(node: str, members: Sequence[Member]) -> tuple[Member, ...]:
    """Choose whom `node` watches: the next members of other boards by name, in a ring.

    So every host has the same few witnesses all the time, whatever the size of the group.
    """
    own_board = next((member.board for member in members if member.node == node), "")
    others = sorted(
        (m for m in members if m.node != node and (m.board != own_board or not own_board)),
        key=lambda member: (member.node < node, member.node),
    )
    return tuple(others[:MOST_WITNESSES])


def lease_route(node: str, boot_id: str, own_word: Callable[[], PeerState]) -> Callable[[], Answer]:
    """Return the route that answers peers about this node's own lease."""

    def answer() -> Answer:
        word = {"node": node, "bootID": boot_id, "lease": own_word().value}
        return Answer(200, json.dumps(word).encode(), "application/json")

    return answer
