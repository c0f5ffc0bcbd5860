"""What fails and when, on the clock of a simulation; between faults the domain rests."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.faults.domain import Domain
from kvpool.sim.faults.machine import Machine

_ROUNDS_AFTER: Final = 20
_ROUNDS_STILL: Final = 240
_PATIENCE: Final = 20
"""Where nothing can be done, for want of a spare for one, rounds become rare."""


class What(StrEnum):
    """What fails."""

    DEVICE = "Device"
    """The accelerator, which its host's agent reports at once."""
    HOST = "Host"
    """Everything: it falls silent, and is given up when its lease has run out."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that fails under one instance, and perhaps is repaired."""

    at_ns: int
    instance: int
    what: What = What.DEVICE
    repaired_after_ns: int | None = None


class FaultSchedule:
    """Faults in the order of their time, over one domain."""

    def __init__(self, domain: Domain, faults: Sequence[Fault]) -> None:
        self._domain = domain
        self._faults = sorted(faults, key=lambda fault: (fault.at_ns, fault.instance))
        self._repairs: list[tuple[int, str]] = []
        self._words: list[tuple[int, str]] = []
        self._round_ns = round(domain.round_seconds * NS_PER_SECOND)
        self._quiet = 0
        self._still = 0
        """Rounds since somebody decided something."""
        self._now_ns = 0

    def due_ns(self) -> int | None:
        """The next fault or repair, or the next round while the domain has not settled."""
        times = [self._faults[0].at_ns] if self._faults else []
        times += [time_ns for time_ns, _ in self._repairs]
        if self._quiet:
            pause = _PATIENCE if self._still > _ROUNDS_STILL else 1
            times.append(self._now_ns + pause * self._round_ns)
        return min(times, default=None)

    def is_more_to_come(self) -> bool:
        """Whether a fault or a repair is still ahead."""
        return bool(self._faults or self._repairs)

    def step(self, now_ns: int) -> None:
        """Let happen what is due, and do one round when somebody has to decide."""
        domain = self._domain
        now = domain.start_seconds + now_ns / NS_PER_SECOND
        if not self._quiet:
            domain.rest_until(now)
        self._now_ns = now_ns
        began = False
        while self._faults and self._faults[0].at_ns <= now_ns:
            self._begin(self._faults.pop(0), now)
            began = True
        for time_ns, name in [repair for repair in self._repairs if repair[0] <= now_ns]:
            self._repairs.remove((time_ns, name))
            machine = next(machine for machine in domain.machines if machine.name == name)
            machine.repair(now)
            self._say(f"{name} is repaired")
            self._quiet = _ROUNDS_AFTER
        before, writes = domain.weights(), domain.objects.writes
        if self._quiet and not began:
            # What has just failed is seen with the next round: agents look that often.
            domain.round(now)
            self._still = self._still + 1 if domain.objects.writes == writes else 0
            # A repaired host is looked at for a while after all is served again: it becomes a spare.
            self._quiet = self._quiet - 1 if domain.is_settled else _ROUNDS_AFTER
        self._tell(before)

    def weights(self) -> list[int]:
        """Of each instance, as routers have them."""
        return self._domain.weights()

    def hosts(self) -> list[str]:
        """Which host serves each instance."""
        return self._domain.hosts()

    def take_words(self) -> list[tuple[int, str]]:
        """What has happened since this was asked last."""
        words, self._words = self._words, []
        return words

    def _begin(self, fault: Fault, now: float) -> None:
        machine: Machine | None = self._domain.host_of(fault.instance)
        if machine is None:
            self._say(f"instance {fault.instance} was to fail and serves nowhere")
            return
        if fault.what is What.HOST:
            machine.alive = False
            self._say(f"{machine.name} dies, which serves instance {fault.instance}")
        else:
            machine.break_device(now)
            self._say(f"the device of {machine.name} dies, which serves instance {fault.instance}")
        if fault.repaired_after_ns is not None:
            self._repairs.append((fault.at_ns + fault.repaired_after_ns, machine.name))
            self._repairs.sort()
        self._quiet = _ROUNDS_AFTER

    def _tell(self, before: list[int]) -> None:
        for seconds, text in self._domain.log:
            self._words.append((round((seconds - self._domain.start_seconds) * NS_PER_SECOND), text))
        self._domain.log.clear()
        reasons = self._domain.weight_reasons()
        for place, (old, new) in enumerate(zip(before, self._domain.weights(), strict=True)):
            if old != new:
                why = f" ({reasons[place]})" if reasons[place] else ""
                self._say(f"weight of instance {place}: {old} to {new}{why}")

    def _say(self, text: str) -> None:
        self._words.append((self._now_ns, text))
