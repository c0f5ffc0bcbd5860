"""When the clever rule must not decide, and what does instead.

Source: the limits that Tumkur et al. report for completion-time routing ("Calibrate, Then Route", arXiv
2609.16206, read second hand): nothing to gain in pools of three, worse than spraying under extreme scarcity,
and no better than counting queues when its constants are wrong. Thresholds and hysteresis are kvpool's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvpool.plan.routing.counting import LeastOutstanding, Uniform
from kvpool.plan.routing.router import Router
from kvpool.plan.routing.views import Ask, Draws, Instance

USUAL_BATCH: Final = 32
USUAL_CONTEXT_TOKENS: Final = 1024
"""What the speeds of cards are compared at."""


class Cause(StrEnum):
    """Why the clever rule does not decide."""

    UNCALIBRATED = "Uncalibrated"
    STALE_CALIBRATION = "StaleCalibration"
    SMALL_POOL = "SmallPool"
    SCARCITY = "Scarcity"
    OVERSIZED = "Oversized"


_MESSAGES: Final = {
    Cause.UNCALIBRATED: "the constants of the pool did not pass: requests are counted",
    Cause.STALE_CALIBRATION: "the oldest constants are {measured:.0f} s old, more than {limit:.0f} s: "
    "requests are counted",
    Cause.SMALL_POOL: "the pool has {measured:.0f} instances, up to {limit:.0f} gain nothing: "
    "requests are counted",
    Cause.SCARCITY: "the emptiest instance has promised {measured:.0%} of its KV, the limit is {limit:.0%}: "
    "requests are sprayed",
    Cause.OVERSIZED: "the request needs {measured:.0f} tokens, and the largest instance holds {limit:.0f}: "
    "it is sprayed",
}


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """Thresholds of the guards."""

    small_pool: int = 3
    """Up to this many instances requests are counted; 0 turns the guard off."""
    unequal_below: float = 0.7
    """The guard of small pools is off when the slowest card has less than this share of the fastest one's
    speed: unequal cards gain in small pools too (`kvpool simulate threshold` has the table)."""
    scarce_above: float = 0.95
    """When even the emptiest instance has promised more than this share of its KV..."""
    scarce_for_ns: int = 2_000_000_000
    """...for this long, requests are sprayed..."""
    plenty_below: float = 0.85
    """...until one is below this share again."""
    calibration_age_ns: int = 86_400_000_000_000
    """Constants older than this are not believed."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far the constants of the pool can be believed."""

    valid: bool
    measured_at_ns: int
    """Of the oldest constants in use, on the clock that `now_ns` is read from."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """A guard that holds, with the figures that it was judged by."""

    cause: Cause
    measured: float
    limit: float

    @property
    def message(self) -> str:
        """One sentence with both figures and what happens instead."""
        return _MESSAGES[self.cause].format(measured=self.measured, limit=self.limit)


class Scarcity:
    """Whether KV is scarce everywhere, with hysteresis in share and in time."""

    def __init__(self, settings: GuardSettings) -> None:
        self._settings = settings
        self._since_ns: int | None = None
        self.holds = False

    def look(self, instances: Sequence[Instance], now_ns: int) -> float:
        """Take in the state at `now_ns`; times must not fall. Returns the share of the emptiest instance."""
        share = min(one.reserved_tokens / max(1, one.capacity_tokens) for one in instances)
        if self.holds:
            self.holds = share >= self._settings.plenty_below
            self._since_ns = None
        elif share <= self._settings.scarce_above:
            self._since_ns = None
        elif self._since_ns is None:
            self._since_ns = now_ns
        else:
            self.holds = now_ns - self._since_ns > self._settings.scarce_for_ns
        return share


class Guarded:
    """A clever rule with the guards in front of it."""

    def __init__(
        self,
        clever: Router,
        draws: Draws,
        settings: GuardSettings | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        """`calibration` None: the constants are known to be right, as in a simulation."""
        self._clever = clever
        self._counting = LeastOutstanding()
        self._spraying = Uniform(draws)
        self._settings = settings or GuardSettings()
        self._scarcity = Scarcity(self._settings)
        self.calibration = calibration
        self.fallback: Fallback | None = None
        """The guard that held at the last choice; None: the clever rule decided."""

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """By the first guard that holds, else by the clever rule."""
        self.fallback = self._judge(ask, instances, now_ns)
        if self.fallback is None:
            return self._clever.choose(ask, instances, now_ns)
        if self.fallback.cause in (Cause.SCARCITY, Cause.OVERSIZED):
            return self._spraying.choose(ask, instances, now_ns)
        return self._counting.choose(ask, instances, now_ns)

    def _judge(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> Fallback | None:
        settings = self._settings
        share = self._scarcity.look(instances, now_ns)
        if self._scarcity.holds:
            return Fallback(Cause.SCARCITY, share, settings.plenty_below)
        needed = ask.prompt_tokens + ask.bound_output_tokens
        largest = max(one.capacity_tokens for one in instances)
        if needed > largest:
            # Every score is that of the longest wait, and their order says nothing.
            return Fallback(Cause.OVERSIZED, needed, largest)
        if self.calibration is not None:
            age_ns = now_ns - self.calibration.measured_at_ns
            if not self.calibration.valid:
                return Fallback(Cause.UNCALIBRATED, 0, 1)
            if age_ns > settings.calibration_age_ns:
                return Fallback(Cause.STALE_CALIBRATION, age_ns / 1e9, settings.calibration_age_ns / 1e9)
        small = len(instances) <= settings.small_pool
        if small and _slowest_share(instances) >= settings.unequal_below:
            return Fallback(Cause.SMALL_POOL, len(instances), settings.small_pool)
        return None


def _slowest_share(instances: Sequence[Instance]) -> float:
    """Speed of the slowest instance over that of the fastest, with a full batch of usual requests."""
    steps = [one.timing.step_ns(USUAL_BATCH, USUAL_BATCH * USUAL_CONTEXT_TOKENS) for one in instances]
    return min(steps) / max(steps)
