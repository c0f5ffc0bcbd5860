"""One screen: where the memory went, how the nodes, groups and spares stand, and what is held back."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from kvpool.cli.operator_state import OperatorState
from kvpool.cli.screen import Screen, Section, Table
from kvpool.cli.views.figures import age_seconds, as_document
from kvpool.cli.views.findings import findings
from kvpool.cli.views.groups import group_rows, group_table, move_table, open_moves, slot_rows, slot_table
from kvpool.cli.views.holds import hold_rows, hold_table, operator_lines
from kvpool.cli.views.memory import (
    ForeignRow,
    budget_rows,
    foreign_rows,
    foreign_table,
    pool_rows,
    store_rows,
    store_table,
    tier_table,
)
from kvpool.cli.views.nodes import node_rows, node_table, supernode_rows, supernode_table
from kvpool.cli.views.own import own_objects
from kvpool.model.instant import Instant
from kvpool.world.build import Objects

ROWS_MOST: Final = 16
"""One screen: of more nodes or slots only those that are not well are shown, of other rows the first."""

R = TypeVar("R")


def overview(
    objects: Objects, operator: OperatorState, namespace: str | None, now: Instant, *, wide: bool
) -> Screen:
    """Build the whole screen; `wide` shows every row."""
    own = own_objects(objects, namespace)
    pools, budgets = pool_rows(own.pools, now), budget_rows(own.budgets, now)
    stores, foreign = store_rows(own.pools, now), foreign_rows(own.pools, now)
    nodes, supernodes = node_rows(own.kvnodes, objects.nodes, now), supernode_rows(own.supernodes)
    groups, slots = group_rows(own.groups, now), slot_rows(own.slots)
    moves, holds = open_moves(own.remaps, now), hold_rows(own.peoples)
    shown_nodes, nodes_note = _unwell(nodes, lambda row: row.is_well, "nodes that are well", wide=wide)
    shown_slots, slots_note = _unwell(slots, lambda row: row.serving == "True", "slots that serve", wide=wide)
    sections: list[Section] = [
        operator_lines(operator, now),
        tier_table("Pools", "POOL", pools),
        tier_table("Budgets", "BUDGET", budgets),
        *([store_table(stores)] if stores else []),
        *([_foreign(foreign, wide=wide)] if foreign else []),
        node_table(shown_nodes, nodes_note),
        *([supernode_table(supernodes)] if supernodes else []),
        group_table(groups),
        *([slot_table(shown_slots, slots_note)] if slots else []),
        *([move_table(moves)] if moves else []),
        *([hold_table(holds)] if holds else []),
    ]
    document = {
        "operator": operator_document(operator, now),
        "pools": pools,
        "budgets": budgets,
        "stores": stores,
        "foreign": foreign,
        "nodes": nodes,
        "supernodes": supernodes,
        "groups": groups,
        "slots": slots,
        "openMoves": moves,
        "heldBack": holds,
    }
    return Screen(sections, as_document(document), findings(own.all, objects.malformed, operator, now))


def _foreign(rows: Sequence[ForeignRow], *, wide: bool) -> Table:
    """The first rows of what others brought, and how many more there are."""
    left = 0 if wide else max(0, len(rows) - ROWS_MOST)
    note = f"{left} more are not shown (-o wide shows all)" if left else ""
    return foreign_table(rows[: len(rows) - left], note)


def operator_document(operator: OperatorState, now: Instant) -> dict[str, object]:
    """The operator's state for programs."""
    lease = operator.lease
    return {
        "namespace": operator.namespace,
        "leader": lease.holder if lease is not None else None,
        "operatorEpoch": lease.epoch if lease is not None else None,
        "leaseAgeSeconds": age_seconds(lease.renewed, now) if lease is not None else None,
        "modeCap": operator.mode_cap,
        "pause": operator.pause,
    }


def _unwell(
    rows: Sequence[R], is_well: Callable[[R], bool], well: str, *, wide: bool
) -> tuple[Sequence[R], str]:
    """All rows when they fit the screen, else those that are not well and a note about the others."""
    if wide or len(rows) <= ROWS_MOST:
        return rows, ""
    shown = [row for row in rows if not is_well(row)]
    return shown, f"{len(rows) - len(shown)} {well} are not shown (-o wide shows all)"
