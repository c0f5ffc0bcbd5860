"""What a pool's store says of itself: whether it answers, what it lost, whose segments it has."""

from collections.abc import Iterable
from typing import Final

from kvpool.api.conditions import ConditionType, Verdict
from kvpool.api.kvpool import KVPool
from kvpool.model.instant import Instant, moment_text
from kvpool.model.observations import StoreView
from kvpool.plan.figures import ForeignSegment, UnitReading
from kvpool.plan.freshness import STALE_AFTER_SECONDS
from kvpool.plan.sizes import short_size
from kvpool.plan.unit_findings import contents_lost_words

LOSS_SHOWN_SECONDS: Final = 600.0
"""How long lost contents stay a condition."""

_NODES_NAMED: Final = 8


def store_reachable(
    pool: KVPool, store: StoreView | None, foreign: Iterable[ForeignSegment], now: Instant
) -> Verdict | None:
    """Judge whether the store answers; None for a pool without one."""
    kind = ConditionType.STORE_REACHABLE
    if pool.spec.store.mooncake is None:
        return None
    if store is None:
        return Verdict(kind, None, "NotAsked", "the master has not been asked yet")
    if not store.reachable:
        where = store.admin_address or "its address is unknown"
        return Verdict(kind, False, "NoAnswer", f"the master does not answer ({where}): {store.message}")
    if now.monotonic_seconds - store.asked_at > STALE_AFTER_SECONDS:
        asked = moment_text(now.wall_at(store.asked_at))
        return Verdict(kind, None, "AnswerTooOld", f"the master answered last at {asked}")
    return Verdict(kind, True, "Answers", f"the master answers{_foreign_text(foreign)}")


def _foreign_text(foreign: Iterable[ForeignSegment]) -> str:
    """Say how much others brought, and where."""
    by_node: dict[str, int] = {}
    for found in foreign:
        where = found.node or "elsewhere"
        by_node[where] = by_node.get(where, 0) + found.segment.capacity_bytes
    if not by_node:
        return "; every segment is ours"
    places = [f"{node} {short_size(size)}" for node, size in sorted(by_node.items())]
    more = f" and {len(places) - _NODES_NAMED} more nodes" if len(places) > _NODES_NAMED else ""
    named = ", ".join(places[:_NODES_NAMED])
    return f"; others brought {short_size(sum(by_node.values()))}: {named}{more}"


def contents_lost(
    store: StoreView | None, readings: Iterable[UnitReading], now: Instant
) -> tuple[Verdict | None, float | None]:
    """Judge whether the store forgot its keys lately, by its key count or its keepers' word.

    Returns the verdict, and when it ends (None: with the keepers' next report).
    """
    kind = ConditionType.STORE_CONTENTS_LOST
    if store is not None and store.keys_lost_at is not None:
        ends = store.keys_lost_at + LOSS_SHOWN_SECONDS
        if now.monotonic_seconds < ends:
            when = moment_text(now.wall_at(store.keys_lost_at))
            text = f"the master forgot every key at {when} while segments stayed; the cache refills"
            return Verdict(kind, True, "MasterRestarted", text), ends
    words = contents_lost_words(readings)
    return (Verdict(kind, True, "KeepersSay", words), None) if words is not None else (None, None)
