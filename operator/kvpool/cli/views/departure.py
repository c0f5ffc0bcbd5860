"""What `uninstall` says: what would go, what stays without --drain, what is waited for, and how it ended."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from kvpool.api import labels
from kvpool.cli.screen import Column, Lines, Screen, Section, Table
from kvpool.cli.uninstalling.remains import Item, Left, Step
from kvpool.plan.sizes import listed

_COLUMNS = (Column("STEP"), Column("WHAT"), Column("COUNT", right=True), Column("NAMES"))
_WAITED_FOR_MOST = 20


@dataclass(frozen=True, slots=True)
class Departure:
    """What is there to go, step by step in order."""

    namespace: str
    release: str
    items: Mapping[Step, Sequence[Item]]
    crds: bool

    @property
    def last_command(self) -> str:
        """What is left for a person to run."""
        return f"helm uninstall {self.release} -n {self.namespace}"


def announced(departure: Departure) -> Screen:
    """With --drain, and without --yes: what would go, in order."""
    notes = [
        "Nothing was changed. To do it: kubectl kvpool uninstall --drain --yes"
        + (" --crds" if departure.crds else ""),
        f"and then: {departure.last_command}",
    ]
    if departure.items[Step.HOLDINGS]:
        notes.insert(0, "All cached blocks go with the memory, and routes of kvpool lead nowhere then.")
    if not departure.crds:
        notes.append("The CustomResourceDefinitions stay unless --crds is given.")
    table = Table("Would go, in this order", _COLUMNS, _rows(departure))
    return Screen((table, Lines("", notes)), _document(departure))


def kept_by_helm(departure: Departure) -> Screen:
    """Without --drain: what `helm uninstall` alone leaves."""
    left = {step: departure.items[step] for step in (Step.HOLDINGS, Step.OBJECTS, Step.NODES, Step.KEPT)}
    shown = Departure(departure.namespace, departure.release, left, crds=False)
    text = Lines(
        "",
        [
            f"{departure.last_command} alone takes operators and agents away and nothing else: memory stays",
            "mounted and readable, engines and routes go on as they are, and a later `helm install` of the",
            "same release takes all of it over. Nobody looks after it meanwhile.",
            "For nothing to be left: kubectl kvpool uninstall --drain",
        ],
    )
    table = Table("Stays after helm uninstall", _COLUMNS, _rows(shown))
    return Screen((table, text), _document(shown))


def over(departure: Departure, left: Left) -> Screen:
    """With --yes: what is left; anything makes the exit code 1."""
    document = _document(Departure(departure.namespace, departure.release, {}, crds=departure.crds))
    document["left"] = [str(item) for item in left.items]
    if left.items or left.trouble:
        return Screen((), document, _unfinished(left))
    stays = "" if departure.crds else " The CustomResourceDefinitions stay."
    lines = [
        f"Nothing of kvpool is left but the release itself.{stays}",
        f"Last: {departure.last_command}",
    ]
    section: Section = Lines("", lines)
    return Screen((section,), document)


def progress(step: Step, items: Sequence[Item]) -> str:
    """One line: `memory and seats: waits for 3 units, 1 keeper Pod`."""
    counts = Counter(item.kind for item in items)
    return f"{step}: {', '.join(f'{count} x {kind}' for kind, count in counts.items())}"


def _unfinished(left: Left) -> list[str]:
    shown = [f"left: {item}" for item in left.items[:_WAITED_FOR_MOST]]
    if len(left.items) > len(shown):
        shown.append(f"left: {len(left.items) - len(shown)} more of the step {left.step}")
    if left.trouble:
        shown.append(f"the API server could not be asked: {left.trouble}")
    shown.append(
        "nothing was forced, and later steps were not begun: run the command again to go on, with more "
        "--timeout where that is all; for a machine that is gone for good, delete its Node first"
    )
    if left.step is Step.HOLDINGS:
        shown.append(f"to keep kvpool instead, delete the ConfigMap {labels.UNINSTALL_CONFIG_MAP}")
    return shown


def _rows(departure: Departure) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for step, items in departure.items.items():
        by_kind: dict[str, list[str]] = {}
        for item in items:
            by_kind.setdefault(item.kind, []).append(item.name)
        rows += [(step.value, kind, str(len(names)), listed(names)) for kind, names in by_kind.items()]
    return rows


def _document(departure: Departure) -> dict[str, JsonValue]:
    return {
        "release": departure.release,
        "namespace": departure.namespace,
        "items": [
            {"step": step.value, "kind": item.kind, "name": item.name, "why": item.why}
            for step, items in departure.items.items()
            for item in items
        ],
    }
