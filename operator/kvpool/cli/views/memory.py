"""Where the memory went: bytes of every pool and budget by tier, and what the pools' stores say."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvpool.api import KVPool, TierBudget
from kvpool.api.conditions import ConditionType, find_condition
from kvpool.api.tierbudget import TierFigures
from kvpool.cli.screen import Column, Table
from kvpool.cli.views.figures import UNKNOWN, age_seconds, age_text, size_text
from kvpool.cli.views.own import path_of
from kvpool.model.instant import Instant
from kvpool.plan.sizes import bytes_or_none


@dataclass(frozen=True, slots=True)
class TierRow:
    """One tier of one pool or budget; bytes are None where the object does not say."""

    name: str
    """`namespace/name` of a pool, the name of a budget."""
    mode: str
    tier: str
    declared_bytes: int | None
    admitted_bytes: int | None
    bound_bytes: int | None
    used_bytes: int | None
    foreign_bytes: int | None
    unknown_bytes: int | None
    age_seconds: float | None
    """Of the oldest report behind the figures."""


@dataclass(frozen=True, slots=True)
class StoreRow:
    """What a pool's store says; `answers` is True, False or Unknown."""

    pool: str
    answers: str
    message: str
    age_seconds: float | None
    """Since `answers` is what it is."""


@dataclass(frozen=True, slots=True)
class ForeignRow:
    """What others brought to one pool's store on one node."""

    pool: str
    node: str
    """Empty for what is on none of the cluster's nodes; `others` for nodes that the pool does not list."""
    tier: str
    size_bytes: int | None
    segments: int | None
    age_seconds: float | None
    """Since the store said so."""


def pool_rows(pools: Iterable[KVPool], now: Instant) -> list[TierRow]:
    """Every tier of every pool; a pool without figures has one row without them."""
    return [row for pool in pools for row in _rows(path_of(pool), pool.spec.mode, pool.status.tiers, now)]


def budget_rows(budgets: Iterable[TierBudget], now: Instant) -> list[TierRow]:
    """Every tier of every budget."""
    return [
        row
        for budget in budgets
        for row in _rows(budget.metadata.name, budget.spec.mode, budget.status.tiers, now)
    ]


def _rows(name: str, mode: str, tiers: Sequence[TierFigures], now: Instant) -> list[TierRow]:
    if not tiers:
        return [TierRow(name, mode, UNKNOWN, None, None, None, None, None, None, None)]
    return [
        TierRow(
            name,
            mode,
            tier.name,
            declared_bytes=bytes_or_none(tier.declared),
            admitted_bytes=bytes_or_none(tier.admitted),
            bound_bytes=bytes_or_none(tier.bound),
            used_bytes=bytes_or_none(tier.used),
            foreign_bytes=bytes_or_none(tier.foreign),
            unknown_bytes=bytes_or_none(tier.unknown),
            age_seconds=age_seconds(tier.observed_at, now),
        )
        for tier in tiers
    ]


def tier_table(title: str, first: str, rows: Sequence[TierRow]) -> Table:
    """The table of pools or of budgets."""
    columns = (
        Column(first),
        Column("MODE", wide=True),
        Column("TIER"),
        Column("DECLARED", right=True),
        Column("ADMITTED", right=True),
        Column("BOUND", right=True),
        Column("USED", right=True),
        Column("FOREIGN", right=True),
        Column("UNKNOWN", right=True),
        Column("AGE", right=True),
    )
    return Table(title, columns, [_cells(row) for row in rows], "" if rows else f"no {title.lower()}")


def _cells(row: TierRow) -> tuple[str, ...]:
    figures = (
        row.declared_bytes,
        row.admitted_bytes,
        row.bound_bytes,
        row.used_bytes,
        row.foreign_bytes,
        row.unknown_bytes,
    )
    return (
        row.name,
        row.mode,
        row.tier,
        *(size_text(figure) for figure in figures),
        age_text(row.age_seconds),
    )


def store_rows(pools: Iterable[KVPool], now: Instant) -> list[StoreRow]:
    """What each pool says of its store: whether it answers, and how much others brought."""
    found = []
    for pool in pools:
        condition = find_condition(pool.status.conditions, ConditionType.STORE_REACHABLE)
        if condition is not None:
            since = age_seconds(condition.last_transition_time, now)
            found.append(StoreRow(path_of(pool), condition.status, condition.message, since))
    return found


def store_table(rows: Sequence[StoreRow]) -> Table:
    """The table of stores."""
    columns = (Column("POOL"), Column("ANSWERS"), Column("SINCE", right=True), Column("WHAT IT SAYS"))
    cells = [(row.pool, row.answers, age_text(row.age_seconds), row.message) for row in rows]
    return Table("Stores", columns, cells)


def foreign_rows(pools: Iterable[KVPool], now: Instant) -> list[ForeignRow]:
    """What others brought to each pool's store, by node; what the pool does not list is a row of its own."""
    return [row for pool in pools for row in _foreign_rows(pool, now)]


def _foreign_rows(pool: KVPool, now: Instant) -> list[ForeignRow]:
    name = path_of(pool)
    listed = [
        ForeignRow(
            name,
            entry.node,
            entry.tier,
            bytes_or_none(entry.size),
            entry.segments,
            age_seconds(entry.observed_at, now),
        )
        for entry in pool.status.foreign
    ]
    for tier in pool.status.tiers if listed else ():
        rest = (bytes_or_none(tier.foreign) or 0) - sum(
            row.size_bytes or 0 for row in listed if row.tier == tier.name
        )
        if rest > 0:
            age = age_seconds(tier.observed_at, now)
            listed.append(ForeignRow(name, "others", tier.name, rest, None, age))
    return listed


def foreign_table(rows: Sequence[ForeignRow], note: str = "") -> Table:
    """The table of what others brought."""
    columns = (
        Column("POOL"),
        Column("NODE"),
        Column("TIER"),
        Column("BYTES", right=True),
        Column("SEGMENTS", right=True),
        Column("AGE", right=True),
    )
    cells = [
        (
            row.pool,
            row.node or "elsewhere",
            row.tier,
            size_text(row.size_bytes),
            UNKNOWN if row.segments is None else str(row.segments),
            age_text(row.age_seconds),
        )
        for row in rows
    ]
    return Table("Memory of others", columns, cells, note)
