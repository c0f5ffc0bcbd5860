"""What applying manifests would change: the actions and reasons of a plan with them, against one without."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kvpool.api.conditions import ConditionType, find_condition
from kvpool.cli.foresight import Foresight
from kvpool.cli.screen import Column, Screen, Section, Table
from kvpool.cli.views.actions import Deed, deeds, reasons, weight_changes, withheld_name
from kvpool.cli.views.figures import as_document
from kvpool.model.decisions import WriteStatus
from kvpool.plan.validity import why_not_valid


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """One manifest."""

    object: str
    change: str
    """created, changed, or unchanged."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """What the planning steps would say to one manifest's object."""

    object: str
    code: str
    message: str
    refused: bool
    """Whether nothing (new) is granted."""


def difference(changed: Sequence[ChangedRow], before: Foresight, after: Foresight) -> Screen:
    """Build the screen: what changes, what would be done, what it would be told, and what is held back."""
    names = {row.object for row in changed}
    old = set(_all_deeds(before))
    new = list(dict.fromkeys(deed for deed in _all_deeds(after)))
    done = [deed for deed in new if deed not in old]
    dropped = [deed for deed in dict.fromkeys(_all_deeds(before)) if deed not in set(new)]
    answers = _answers(after, names)
    held = [row for row in _held(after, names) if row not in _held(before, names)]
    findings = [f"{row.object}: {row.code}: {row.message}" for row in answers if row.refused]
    sections: list[Section] = [
        _rows("Manifests", ("OBJECT", "CHANGE"), ((row.object, row.change) for row in changed)),
        _rows("Answers", ("OBJECT", "REASON", "WHY"), ((a.object, a.code, a.message) for a in answers)),
        _deed_table("Would be done first", done, "nothing: no action follows from it"),
        *([_deed_table("Would not be done any more", dropped, "")] if dropped else []),
        *([_rows("Held back", ("OBJECT", "ACTION", "HELD BY"), held)] if held else []),
    ]
    document = {
        "manifests": list(changed),
        "answers": answers,
        "wouldBeDone": done,
        "wouldNotBeDone": dropped,
        "heldBack": [{"object": name, "action": action, "heldBy": by} for name, action, by in held],
    }
    return Screen(sections, as_document(document), findings)


def _answers(after: Foresight, names: Collection[str]) -> list[AnswerRow]:
    """Reasons, verdicts of the statuses that would be written, and what makes a group invalid."""
    found = [
        AnswerRow(about, reason.code, reason.message, refused=False)
        for plan in (after.capacity, after.failover)
        for about, reason in reasons(plan)
        if about in names
    ]
    found += _verdicts(after, names)
    for key, group in sorted(after.snapshot.groups.items()):
        invalid = why_not_valid(after.snapshot, group)
        if f"PDGroup {key}" in names and invalid is not None:
            found.append(AnswerRow(f"PDGroup {key}", invalid.code, invalid.message, refused=True))
    unique = {(row.object, row.code, row.message): row for row in sorted(found, key=lambda row: row.refused)}
    return sorted(unique.values(), key=lambda row: (row.object, row.code))


def _verdicts(after: Foresight, names: Collection[str]) -> Iterable[AnswerRow]:
    """What a pool's condition Admitted and a budget's condition Ready would say."""
    telling = {"KVPool": ConditionType.ADMITTED, "TierBudget": ConditionType.READY}
    for action in after.capacity.actions:
        if not isinstance(action, WriteStatus) or action.kind not in telling:
            continue
        name = f"{action.kind} {str(action.key).lstrip('/')}"
        condition = find_condition(action.status.conditions, telling[action.kind])
        if name in names and condition is not None:
            refused = condition.status == "False"
            yield AnswerRow(name, condition.reason, condition.message, refused=refused)


def _all_deeds(foresight: Foresight) -> list[Deed]:
    found = [
        *deeds(foresight.capacity, foresight.snapshot),
        *deeds(foresight.failover, foresight.snapshot),
    ]
    return [*found, *weight_changes(foresight.failover, foresight.snapshot)]


def _held(foresight: Foresight, names: Collection[str]) -> list[tuple[str, str, str]]:
    return [
        (withheld_name(one), one.action, f"{one.reason.code}: {one.reason.message}")
        for plan in (foresight.capacity, foresight.failover)
        for one in plan.withheld
        if withheld_name(one) in names
    ]


def _rows(title: str, columns: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Table:
    cells = list(rows)
    return Table(title, tuple(Column(name) for name in columns), cells, "" if cells else "none")


def _deed_table(title: str, found: Sequence[Deed], note: str) -> Table:
    columns = (Column("OBJECT"), Column("ACTION"), Column("WHY"))
    cells = [(deed.about, deed.text, deed.why) for deed in found]
    return Table(title, columns, cells, "" if cells else note)
