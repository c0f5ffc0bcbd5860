"""What is wrong with units that were reported: not applied, badly placed, or more used than bound."""

from collections.abc import Iterable, Iterator
from typing import Final

from kvpool.api.conditions import Condition, ConditionType, Verdict, find_condition
from kvpool.model.instant import Instant
from kvpool.plan.figures import UnitReading
from kvpool.plan.sizes import short_size

APPLY_SECONDS: Final = 30.0
"""How long what was decided may differ from what an agent applied before it is said."""

PLACED_PERCENT_LEAST: Final = 90
"""Below this part of a unit on its NUMA node, its placement is skewed."""

_NAMED: Final = 3


def not_applied(
    readings: Iterable[UnitReading], old: Iterable[Condition], now: Instant
) -> tuple[Verdict | None, float | None]:
    """Judge whether agents apply what was decided; the verdict, and when to look again.

    The time is kept by the condition itself: Unknown from the first difference on, True 30 s later.
    """
    lagging = [reading for reading in readings if not reading.stale and not reading.is_bound]
    if not lagging:
        return None, None
    text = _several([_lag(reading) for reading in lagging])
    before = find_condition(old, ConditionType.BUDGET_NOT_APPLIED)
    if before is not None and before.status == "True":
        return Verdict(ConditionType.BUDGET_NOT_APPLIED, True, "NotApplied", text), None
    began = now.monotonic_seconds
    if before is not None and before.status == "Unknown" and before.last_transition_time is not None:
        began = now.monotonic_of(before.last_transition_time)
    if now.monotonic_seconds - began >= APPLY_SECONDS:
        return Verdict(ConditionType.BUDGET_NOT_APPLIED, True, "NotApplied", text), None
    return Verdict(ConditionType.BUDGET_NOT_APPLIED, None, "Applying", text), began + APPLY_SECONDS


def _lag(reading: UnitReading) -> str:
    unit, reported = reading.unit, reading.reported
    desired = (
        f"{reading.node} {unit.name}: desired {short_size(unit.size_bytes)} of generation {unit.generation}"
    )
    if reported is None:
        return f"{desired}, applied 0: its agent does not know it yet"
    applied = reading.bound_bytes if reading.view is not None else reported.size_bytes
    message = f": {reported.message}" if reported.message else ""
    return (
        f"{desired}, applied {short_size(applied)} of generation {reported.generation} "
        f"({reported.phase.value}{message})"
    )


def numa_skew(readings: Iterable[UnitReading]) -> Verdict | None:
    """Judge whether units lie on the NUMA nodes they were planned for, where the kernel confirmed it."""
    skewed = [text for reading in readings if (text := _skew(reading)) is not None]
    if not skewed:
        return None
    return Verdict(ConditionType.NUMA_SKEW, True, "PlacementDiffers", _several(skewed))


def _skew(reading: UnitReading) -> str | None:
    view, planned = reading.view, reading.unit.numa_node
    if view is None or planned < 0 or not view.placement_verified:
        return None
    total = sum(view.placement.values())
    if view.placement.get(planned, 0) * 100 >= total * PLACED_PERCENT_LEAST:
        return None
    found = ", ".join(
        f"{short_size(size)} on NUMA node {numa}" for numa, size in sorted(view.placement.items()) if size
    )
    size = short_size(reading.unit.size_bytes)
    return f"{reading.node} {reading.unit.name}: planned {size} on NUMA node {planned}, found {found}"


def placement_drift(readings: Iterable[UnitReading]) -> Verdict | None:
    """Pass on where the agents' periodic verification found pages that had moved."""
    drifted = list(_said(readings, "PlacementDrift"))
    if not drifted:
        return None
    return Verdict(ConditionType.PLACEMENT_DRIFT, True, "PlacementDrift", _several(drifted))


def contents_lost_words(readings: Iterable[UnitReading]) -> str | None:
    """Return what keepers say of contents their store forgot; None when none does."""
    lost = list(_said(readings, "StoreContentsLost"))
    return _several(lost) if lost else None


def _said(readings: Iterable[UnitReading], what: str) -> Iterator[str]:
    """Each unit's finding of one kind, as a sentence."""
    for reading in readings:
        for reason, message in reading.view.findings if reading.view is not None else ():
            if reason == what:
                yield f"{reading.node} {reading.unit.name}: {message}"


def _several(texts: list[str]) -> str:
    more = f"; and {len(texts) - _NAMED} more" if len(texts) > _NAMED else ""
    return "; ".join(texts[:_NAMED]) + more
