"""Which changes of conditions people are told about in events."""

from collections.abc import Iterable, Iterator
from typing import Final

from kvpool.api.conditions import Condition, ConditionType
from kvpool.model.decisions import Announce, Reason
from kvpool.model.ids import ObjectKey

_GOOD_WHEN_TRUE: Final = frozenset(
    {ConditionType.ADMITTED, ConditionType.BOUND, ConditionType.STORE_REACHABLE}
)
_BAD_WHEN_TRUE: Final = frozenset(
    {
        ConditionType.BUDGET_NOT_APPLIED,
        ConditionType.NUMA_SKEW,
        ConditionType.PLACEMENT_DRIFT,
        ConditionType.STORE_CONTENTS_LOST,
        ConditionType.OBSERVER_SUSPECT,
        ConditionType.ABOVE_HIGH_WATERMARK,
    }
)
_QUIET_WHEN_FALSE: Final = frozenset({ConditionType.BOUND})
"""Not bound is how every pool begins."""


def announce(
    kind: str, key: ObjectKey, old: Iterable[Condition], new: Iterable[Condition]
) -> Iterator[Announce]:
    """Tell of conditions that turned good or bad between two statuses of an object."""
    before = {condition.type: condition for condition in old}
    for condition in new:
        previous = before.get(condition.type)
        if condition.status == "Unknown" or (previous is not None and _told(previous) == _told(condition)):
            continue
        reason = Reason(condition.reason, condition.message)
        if condition.type in _GOOD_WHEN_TRUE:
            if condition.status == "True":
                yield Announce(kind, key, "Normal", reason)
            elif condition.type not in _QUIET_WHEN_FALSE:
                yield Announce(kind, key, "Warning", reason)
        elif condition.type in _BAD_WHEN_TRUE and condition.status == "True":
            yield Announce(kind, key, "Warning", reason)


def _told(condition: Condition) -> tuple[str, str]:
    return condition.status, condition.reason
