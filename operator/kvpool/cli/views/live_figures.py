"""The figures that move: fill of pools and nodes, weights of slots."""

from collections.abc import Sequence
from typing import Final

from kvpool.cli.screen import Column, Lines, Screen, Section, Table
from kvpool.cli.views.figures import UNKNOWN, age_text, as_document, count_text, size_text
from kvpool.cli.views.groups import SlotRow, slot_rows
from kvpool.cli.views.memory import TierRow, pool_rows
from kvpool.cli.views.nodes import NodeRow, node_rows
from kvpool.cli.views.own import own_objects
from kvpool.model.instant import Instant
from kvpool.world.build import Objects

_BAR: Final = 24
_FILL_COLUMNS: Final = (
    Column("USED", right=True),
    Column("BOUND", right=True),
    Column("FILL", right=True),
    Column(""),
)


def live_figures(objects: Objects, namespace: str | None, now: Instant) -> Screen:
    """Build the screen; it has no findings, whatever the figures are."""
    own = own_objects(objects, namespace)
    pools, slots = pool_rows(own.pools, now), slot_rows(own.slots)
    nodes = node_rows(own.kvnodes, objects.nodes, now)
    sections: list[Section] = [
        Lines("", [f"{now.text()}  figures are as old as AGE and REPORT say"]),
        _pool_table(pools),
        _node_table(nodes),
        *([_slot_table(slots)] if slots else []),
    ]
    return Screen(sections, as_document({"at": now.text(), "pools": pools, "nodes": nodes, "slots": slots}))


def _pool_table(rows: Sequence[TierRow]) -> Table:
    columns = (
        Column("POOL"),
        Column("TIER"),
        *_FILL_COLUMNS,
        Column("FOREIGN", right=True),
        Column("AGE", right=True),
    )
    cells = [
        (
            row.name,
            row.tier,
            *_fill(row.used_bytes, row.bound_bytes),
            size_text(row.foreign_bytes),
            age_text(row.age_seconds),
        )
        for row in rows
    ]
    return Table("Pools", columns, cells, "" if rows else "no pools")


def _node_table(rows: Sequence[NodeRow]) -> Table:
    columns = (Column("NODE"), *_FILL_COLUMNS, Column("REPORT", right=True))
    cells = [
        (row.node, *_fill(row.used_bytes, row.bound_bytes), age_text(row.report_age_seconds)) for row in rows
    ]
    return Table("Nodes", columns, cells, "" if rows else "no nodes")


def _slot_table(rows: Sequence[SlotRow]) -> Table:
    columns = (Column("SLOT"), Column("WEIGHT", right=True), Column(""), Column("PLACE"))
    cells = [
        (
            row.slot,
            count_text(row.weight_acknowledged, row.weight_asked),
            bar(row.weight_acknowledged, 100),
            " ".join(row.places) or UNKNOWN,
        )
        for row in rows
    ]
    return Table("Slots", columns, cells)


def _fill(used_bytes: int | None, bound_bytes: int | None) -> tuple[str, str, str, str]:
    """Used, bound, percent and bar; dashes where either is unknown or nothing is bound."""
    used, bound = size_text(used_bytes), size_text(bound_bytes)
    if used_bytes is None or not bound_bytes:
        return used, bound, UNKNOWN, ""
    return used, bound, f"{used_bytes * 100 // bound_bytes}%", bar(used_bytes, bound_bytes)


def bar(part: int, whole: int) -> str:
    """A bar of at most 24 characters; something is never shown as nothing."""
    return "█" * min(_BAR, -(-part * _BAR // whole))
