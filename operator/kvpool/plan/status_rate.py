"""When a status is worth a write: at once for what people act on, rarely for figures that always move."""

import re
from typing import Any, Final

from kvpool.api.kvpool import KVPoolStatus
from kvpool.api.tierbudget import TierBudgetStatus, TierFigures
from kvpool.model.instant import Instant

REFRESH_SECONDS: Final = 10.0
"""The least age difference of two statuses that differ in use, ages and figures within texts only."""

_FIGURE: Final = re.compile(r"\d+(?:\.\d+)?(?:[KMGTPE]i?)?")


def due_at(
    old: KVPoolStatus | TierBudgetStatus, new: KVPoolStatus | TierBudgetStatus, now: Instant
) -> float | None:
    """Return when `new` is to be written (monotonic seconds; now or past: at once); None when never."""
    if old == new:
        return None
    if _steady(old) != _steady(new):
        return now.monotonic_seconds
    before, after = _observed(old.tiers, now), _observed(new.tiers, now)
    if before is None or after is None or before > now.monotonic_seconds:
        # A moment ahead of now comes from another clock, or from before ours was set back.
        return now.monotonic_seconds
    return now.monotonic_seconds if after - before >= REFRESH_SECONDS else before + REFRESH_SECONDS


def _observed(tiers: tuple[TierFigures, ...], now: Instant) -> float | None:
    moments = [now.monotonic_of(tier.observed_at) for tier in tiers if tier.observed_at is not None]
    return min(moments, default=None)


def _steady(status: KVPoolStatus | TierBudgetStatus) -> dict[str, Any]:
    """The status without use and ages, and with texts without their figures."""
    dumped = status.model_dump()
    for tier in dumped["tiers"]:
        del tier["used"], tier["observed_at"]
    for entry in dumped.get("foreign", ()):
        del entry["observed_at"]
    for condition in dumped["conditions"]:
        condition["message"] = _FIGURE.sub("#", condition["message"])
        del condition["last_transition_time"]
    return dumped
