"""Everything that objects and events say happened, as moments in one order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kvpool.api import EngineSlot, KVNode, PDGroup, Remap
from kvpool.cli.operator_state import Pause
from kvpool.cli.screen import Column, Screen, Table
from kvpool.cli.views.figures import as_document
from kvpool.cli.views.groups import places_of
from kvpool.cli.views.own import OwnObject, object_name
from kvpool.cluster.resources import Obj
from kvpool.model.instant import Instant, moment_text, parse_moment


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened."""

    at: str
    """RFC 3339 in UTC, to the millisecond."""
    what: str
    """Evidence, Move, Stage, Condition, Weights, Fence, Quarantine, Pause or Event."""
    about: str
    text: str


@dataclass(frozen=True, slots=True)
class _Told:
    moment: datetime
    what: str
    about: str
    text: str


def happenings(
    objects: Iterable[OwnObject], events: Iterable[Obj], pause: Pause, since_seconds: float, now: Instant
) -> list[Happening]:
    """All that happened in the last `since_seconds`, oldest first."""
    told = [*_of_pause(pause), *(found for event in events for found in _of_event(event))]
    for item in objects:
        told += _of_object(item)
    recent = [found for found in told if 0 <= (now.wall - found.moment).total_seconds() <= since_seconds]
    recent.sort(key=lambda found: (found.moment, found.about, found.what))
    return [Happening(moment_text(found.moment), found.what, found.about, found.text) for found in recent]


def timeline_screen(found: list[Happening], since: str) -> Screen:
    """The list as a table; times in UTC, with their day where there are several."""
    columns = (Column("TIME (UTC)"), Column("WHAT"), Column("ABOUT"), Column("HAPPENED"))
    one_day = len({entry.at[:10] for entry in found}) == 1
    rows = [
        (
            entry.at[11:23] if one_day else entry.at[5:19].replace("T", " "),
            entry.what,
            entry.about,
            entry.text,
        )
        for entry in found
    ]
    note = "" if found else f"nothing happened within {since}"
    return Screen([Table("", columns, rows, note)], as_document({"happenings": found}))


def _of_object(item: OwnObject) -> Iterator[_Told]:
    name = object_name(item)
    for condition in item.status.conditions:
        text = f"{condition.type} is {condition.status} ({condition.reason}) {condition.message}".rstrip()
        yield from _at(condition.last_transition_time, "Condition", name, text)
    match item:
        case Remap():
            yield from _of_remap(item, name)
        case KVNode():
            yield from _of_kvnode(item, name)
        case EngineSlot() if item.spec.fenced_by is not None:
            fence = item.spec.fenced_by
            text = f"epoch {fence.epoch} fenced ({fence.level}, {fence.proof}); now epoch {item.spec.epoch}"
            yield from _at(fence.at, "Fence", name, text)
        case PDGroup():
            for output in item.status.routing.outputs:
                text = f"output {output.name} carries revision {output.revision} ({output.acknowledged})"
                yield from _at(output.at, "Weights", name, text)
        case _:
            return


def _of_remap(remap: Remap, name: str) -> Iterator[_Told]:
    spec = remap.spec
    yield from _at(spec.first_evidence_at, "Evidence", name, spec.cause)
    way = f"{' '.join(places_of(spec.from_)) or 'nowhere'} to {' '.join(places_of(spec.to))}"
    text = f"{spec.kind} move of {spec.slot} opened: {way}, epoch {spec.epoch}{_incident_text(spec.incident)}"
    yield from _at(remap.metadata.creation_timestamp, "Move", name, text)
    for stage in remap.status.stages:
        after = f" after {stage.seconds}" if stage.seconds else ""
        detail = f": {stage.detail}" if stage.detail else ""
        yield from _at(stage.ended_at, "Stage", name, f"{stage.name} over{after}{detail}")
    yield from _at(remap.status.finished_at, "Move", name, f"over: {remap.status.phase}")


def _of_kvnode(kvnode: KVNode, name: str) -> Iterator[_Told]:
    for device in kvnode.status.devices:
        for found in device.evidence:
            code = f"{device.id}: {found.source} {found.code} ({found.evidence_class})"
            yield from _at(found.first_seen, "Evidence", name, f"{code} first seen")
            if found.count > 1:
                yield from _at(
                    found.last_seen, "Evidence", name, f"{code} seen {found.count} times, now last"
                )
    for device_out in kvnode.spec.quarantine:
        incident = _incident_text(device_out.incident)
        text = f"{device_out.device} still in quarantine{incident}: {device_out.reason}"
        yield from _at(device_out.since, "Quarantine", name, text)


def _incident_text(incident: str) -> str:
    return f", incident {incident}" if incident else ""


def _of_pause(pause: Pause) -> Iterator[_Told]:
    by = f" by {pause.by}" if pause.by else ""
    why = f": {pause.reason}" if pause.reason else ""
    yield from _at(pause.at, "Pause", "cluster", f"{'paused' if pause.paused else 'resumed'}{by}{why}")


def _of_event(event: Obj) -> Iterator[_Told]:
    regarding: dict[str, Any] = event.get("regarding") or {}
    name = "/".join(part for part in (regarding.get("namespace"), regarding.get("name")) if part)
    about = f"{regarding.get('kind', '')} {name}"
    series = event.get("series") or {}
    at = series.get("lastObservedTime") or event.get("eventTime") or event.get("deprecatedLastTimestamp")
    times = f" ({series['count']} times)" if series.get("count") else ""
    yield from _at(at, "Event", about, f"{event.get('reason', '')}: {event.get('note', '')}{times}")


def _at(moment: str | None, what: str, about: str, text: str) -> Iterator[_Told]:
    """One entry; none for a moment that is not there or cannot be read."""
    if not moment:
        return
    try:
        parsed = parse_moment(moment)
    except ValueError:
        return
    if parsed.tzinfo is not None:
        yield _Told(parsed, what, about, text)
