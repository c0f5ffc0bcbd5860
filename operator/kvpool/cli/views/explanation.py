"""Why an object is as it is: its conditions, what the planning steps say of it, and what holds it still."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvpool.api import EngineSlot, KVNode, PDGroup, Remap, Supernode, TierBudget
from kvpool.cli.foresight import Foresight
from kvpool.cli.screen import Column, Lines, Screen, Section, Table
from kvpool.cli.views.actions import Deed, deeds, reasons, weight_changes, withheld_name
from kvpool.cli.views.details import details
from kvpool.cli.views.figures import age_seconds, age_text, as_document
from kvpool.cli.views.findings import object_findings
from kvpool.cli.views.own import OwnObject, object_name, path_of
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.validity import why_not_valid


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """One condition of the object."""

    type: str
    status: str
    reason: str
    age_seconds: float | None
    message: str


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """One reason of the planning steps, and the object that it is about."""

    about: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class WithheldRow:
    """One action that is not done, and why."""

    about: str
    action: str
    code: str
    message: str


def explanation(item: OwnObject, foresight: Foresight, now: Instant) -> Screen:
    """Build the screen for one object."""
    subjects = {object_name(item), *related(item, foresight.snapshot)}
    plans = (foresight.capacity, foresight.failover)
    conditions = [
        ConditionRow(
            one.type, one.status, one.reason, age_seconds(one.last_transition_time, now), one.message
        )
        for one in item.status.conditions
    ]
    why = [
        ReasonRow(about, reason.code, reason.message)
        for plan in plans
        for about, reason in reasons(plan)
        if about in subjects or about == "operator"
    ]
    invalid = why_not_valid(foresight.snapshot, item) if isinstance(item, PDGroup) else None
    if invalid is not None:
        why.append(ReasonRow(object_name(item), invalid.code, invalid.message))
    why = list(dict.fromkeys(why))
    found = [deed for plan in plans for deed in deeds(plan, foresight.snapshot)]
    found += weight_changes(foresight.failover, foresight.snapshot)
    next_steps = [deed for deed in found if subjects & {deed.about, *deed.touches}]
    held = [
        WithheldRow(withheld_name(one), one.action, one.reason.code, one.reason.message)
        for plan in plans
        for one in plan.withheld
        if withheld_name(one) in subjects
    ]
    more = details(item, foresight.snapshot, now)
    sections: list[Section] = [
        Lines("", [_headline(item, foresight.snapshot)]),
        _condition_table(conditions),
        *more.sections,
        *_tables(why, next_steps, held),
    ]
    document = {
        "kind": item.kind,
        "name": path_of(item),
        "conditions": conditions,
        **more.document,
        "reasons": why,
        "nextSteps": next_steps,
        "withheld": held,
    }
    return Screen(sections, as_document(document), object_findings(item))


def _headline(item: OwnObject, snapshot: Snapshot) -> str:
    mode = getattr(item.spec, "mode", None)
    if mode is None:
        return f"{object_name(item)}, written by the operator"
    cap = f", capped to {snapshot.mode_cap}" if mode.capped(snapshot.mode_cap) is not mode else ""
    return f"{object_name(item)}, mode {mode}{cap}"


def related(item: OwnObject, snapshot: Snapshot) -> Iterable[str]:
    """Names of the objects whose reasons are the object's too."""
    match item:
        case KVNode():
            yield from _slots_on(snapshot, {item.metadata.name})
        case Supernode():
            nodes = _selected(item, snapshot)
            yield from (f"KVNode {node}" for node in nodes)
            yield from _slots_on(snapshot, nodes)
        case TierBudget():
            yield from (f"KVNode {node}" for node in _selected(item, snapshot))
        case PDGroup():
            yield from (
                f"EngineSlot {key}"
                for key, slot in snapshot.slots.items()
                if key.namespace == item.metadata.namespace and slot.spec.pd_group == item.metadata.name
            )
        case Remap():
            yield f"EngineSlot {ObjectKey(item.metadata.namespace, item.spec.slot)}"
        case EngineSlot():
            yield f"PDGroup {ObjectKey(item.metadata.namespace, item.spec.pd_group)}"
        case _:
            return


def _selected(item: Supernode | TierBudget, snapshot: Snapshot) -> list[str]:
    """The nodes that are selected, also those that have no KVNode yet."""
    selects = item.spec.node_selector.matches
    return [name for name, fact in snapshot.nodes.items() if selects(fact.labels)]


def _slots_on(snapshot: Snapshot, nodes: Iterable[str]) -> Iterable[str]:
    chosen = set(nodes)
    for key, slot in snapshot.slots.items():
        if any(seat.node in chosen for seat in slot.spec.seats):
            yield f"EngineSlot {key}"


def _condition_table(rows: Sequence[ConditionRow]) -> Table:
    columns = (
        Column("TYPE"),
        Column("STATUS"),
        Column("REASON"),
        Column("SINCE", right=True),
        Column("MESSAGE"),
    )
    cells = [(row.type, row.status, row.reason, age_text(row.age_seconds), row.message) for row in rows]
    return Table("Conditions", columns, cells, "" if rows else "none yet: the operator has not judged it")


def _tables(
    why: Sequence[ReasonRow], next_steps: Sequence[Deed], held: Sequence[WithheldRow]
) -> Iterable[Section]:
    columns = (Column("ABOUT"), Column("REASON"), Column("WHY"))
    cells = [(row.about, row.code, row.message) for row in why]
    yield Table("Reasons", columns, cells, "" if why else "the planning steps say nothing more of it")
    columns = (Column("ABOUT"), Column("WOULD BE DONE NOW"), Column("WHY"))
    cells = [(deed.about, deed.text, deed.why) for deed in next_steps]
    yield Table("Next steps", columns, cells, "" if next_steps else "none: it holds still")
    if held:
        columns = (Column("ABOUT"), Column("WITHHELD"), Column("HELD BY"))
        cells = [(row.about, row.action, f"{row.code}: {row.message}") for row in held]
        yield Table("Withheld", columns, cells)
