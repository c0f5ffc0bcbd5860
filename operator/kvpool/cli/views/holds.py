"""What keeps kvpool from acting: modes and their cap, pauses, and the actions that were withheld."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvpool.api.conditions import ConditionType, find_condition
from kvpool.api.labels import PAUSED
from kvpool.cli.operator_state import OperatorState, Pause
from kvpool.cli.screen import Column, Lines, Table
from kvpool.cli.views.figures import age_seconds, age_text
from kvpool.cli.views.own import PeoplesObject, path_of
from kvpool.model.instant import Instant


@dataclass(frozen=True, slots=True)
class HoldRow:
    """One object that is held back: paused by its annotation, or with actions withheld."""

    kind: str
    name: str
    mode: str
    reason: str
    message: str


def hold_rows(objects: Iterable[PeoplesObject]) -> list[HoldRow]:
    """Paused objects, and those that ask for more than is done."""
    return [row for item in objects for row in _rows(item)]


def _rows(item: PeoplesObject) -> list[HoldRow]:
    meta = item.metadata
    name = path_of(item)
    rows = []
    if meta.annotations.get(PAUSED, "false") != "false":
        text = f"paused by its annotation: kubectl kvpool resume {item.kind.lower()}/{meta.name}"
        rows.append(HoldRow(item.kind, name, item.spec.mode, "Paused", text))
    withheld = find_condition(item.status.conditions, ConditionType.ACTION_WITHHELD)
    if withheld is not None and withheld.status == "True" and not rows:
        rows.append(HoldRow(item.kind, name, item.spec.mode, withheld.reason, withheld.message))
    return rows


def hold_table(rows: Sequence[HoldRow]) -> Table:
    """The table of what is held back."""
    columns = (Column("OBJECT"), Column("MODE"), Column("REASON"), Column("WITHHELD"))
    cells = [(f"{row.kind} {row.name}", row.mode, row.reason, row.message) for row in rows]
    return Table("Held back", columns, cells)


def operator_lines(operator: OperatorState, now: Instant) -> Lines:
    """Who leads, the cap, and the pause, in two lines; a third one when kvpool is being uninstalled."""
    lease = operator.lease
    if lease is None or not lease.holder:
        leader = f"no operator leads in namespace {operator.namespace}"
    else:
        age = age_text(age_seconds(lease.renewed, now))
        leader = f"{lease.holder} leads, operator epoch {lease.epoch}, Lease renewed {age} ago"
    cap = operator.mode_cap.value if operator.mode_cap is not None else "unknown"
    lines = [f"Operator: {leader}", f"Mode cap: {cap}; {pause_text(operator.pause, now)}"]
    if operator.uninstall is not None:
        lines.append("kvpool is being UNINSTALLED: everything is given back")
    return Lines("", lines)


def pause_text(pause: Pause, now: Instant) -> str:
    """`not paused`, or who paused the cluster, when and why."""
    if not pause.paused:
        return "the cluster is not paused"
    by = f" by {pause.by}" if pause.by else ""
    age = age_seconds(pause.at, now)
    since = f" {age_text(age)} ago" if age is not None else ""
    why = f": {pause.reason}" if pause.reason else ""
    return f"the cluster is PAUSED{by}{since}{why}"
