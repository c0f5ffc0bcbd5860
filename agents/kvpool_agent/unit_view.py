"""How units are reported: pure, from plan, journal and what was seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from kvpool.api.kvnode import UnitPhase
from kvpool.wire.convert_bounds import MAX_ITEMS, MAX_NAME
from kvpool_agent.messages import printable
from kvpool_agent.plan_apply import Look, Situation, conflict
from kvpool_agent.timing import CONTENTS_LOST_SHOWN_SECONDS, MOST_FINDINGS
from kvpool_agent.units import Finding, Record, RecordPhase, UnitPlan, UnitView
from kvpool_keeper.contract import KEEPER_SILENT_SECONDS, KeeperPhase, Release

NANOSECONDS = 1_000_000_000


def unit_views(
    situation: Situation, troubles: Mapping[str, str], now_boottime_ns: int
) -> tuple[UnitView, ...]:
    """Return one view of each recorded, planned or found unit; `troubles` say what stopped the last step.

    Units are reported by name, so of several generations one speaks: what is recorded (the newest) before
    what is only planned, and that before what was found. What else was found is named in its findings.
    """
    views = [
        _of_record(
            record,
            situation.looks.get(key),
            _notes(situation, record),
            troubles.get(key, ""),
            now_boottime_ns,
        )
        for key, record in sorted(situation.records.items())
    ]
    planned = situation.planned or {}
    views += [
        _of_planned(unit, troubles.get(unit.key, ""), hold=situation.hold)
        for unit in planned.values()
        if unit.key not in situation.records
    ]
    strangers = sorted(situation.orphans - {unit.key for unit in planned.values()})
    # The operator refuses longer Reports; what is recorded or planned goes before what lies about.
    shown = strangers[: max(0, MAX_ITEMS - len(views))]
    views += [_of_orphan(key, unshown=len(strangers) - len(shown)) for key in shown]
    return _by_name(views, recorded=len(situation.records))


def _by_name(views: list[UnitView], *, recorded: int) -> tuple[UnitView, ...]:
    """One view for each name; the first `recorded` ones are of records."""
    newest_first = sorted(views[:recorded], key=lambda view: -view.generation)
    spoken: dict[str, UnitView] = {}
    for view in (*newest_first, *views[recorded:]):
        known = spoken.setdefault(view.name, view)
        if known is not view:
            told = tuple(replace(finding, degrades=False) for finding in view.findings)
            spoken[view.name] = replace(known, findings=(*known.findings, *told)[:MOST_FINDINGS])
    return tuple(spoken[name] for name in sorted(spoken))


def _of_planned(unit: UnitPlan, trouble: str, *, hold: bool) -> UnitView:
    if trouble:
        phase, message = UnitPhase.FAILED, trouble
    elif unit.release is not Release.NONE:
        phase, message = UnitPhase.RELEASED, "nothing of it is on this node"
    else:
        phase, message = UnitPhase.PENDING, "on hold: nothing new is started" if hold else ""
    return UnitView(unit.name, unit.generation, phase, unit.size_bytes, message=message)


def _of_orphan(key: str, *, unshown: int) -> UnitView:
    """Something that carries our name, without a record and without a plan that names it."""
    key = printable(key) or "unnamed"  # whoever made it may have chosen any bytes
    name, _, generation = key.rpartition("-g")
    known = re.fullmatch("[0-9]{1,18}", generation)
    message = f"{key} carries kvpool's name but no record knows it; it is kept, remove it by hand if unwanted"
    if unshown:
        message += f" (so are {unshown} more that are not shown)"
    return UnitView(
        (name or key)[:MAX_NAME],
        int(generation) if known else 0,
        UnitPhase.DEGRADED,
        0,
        findings=(Finding("Quarantined", message),),
        message=message,
    )


def _notes(situation: Situation, record: Record) -> tuple[Finding, ...]:
    """What the plan says, or fails to say, of a recorded unit."""
    if situation.planned is None:
        return ()
    if record.unit.name not in situation.planned and record.unit.release is Release.NONE:
        message = "the plan does not name this unit; it is kept until a release is asked for"
        return (Finding("NotPlanned", message, degrades=False),)
    refused = conflict(situation.planned, record)
    return (Finding("PlanConflict", refused, degrades=False),) if refused else ()


def _of_record(
    record: Record, look: Look | None, notes: tuple[Finding, ...], trouble: str, now_boottime_ns: int
) -> UnitView:
    unit = record.unit
    if look is None or record.phase in (RecordPhase.RELEASED, RecordPhase.PREPARING):
        phase = UnitPhase.RELEASED if record.phase is RecordPhase.RELEASED else UnitPhase.PREPARING
        return UnitView(unit.name, unit.generation, phase, unit.size_bytes, message=trouble or record.message)
    findings = (*look.reality.findings, *_of_keeper(record, look, now_boottime_ns), *notes)
    status = look.keeper.status
    phase, message = _phase(record, look, findings)
    fresh = status is not None and look.keeper.alive
    return UnitView(
        unit.name,
        unit.generation,
        phase,
        unit.size_bytes,
        resident_bytes=look.reality.resident_bytes,
        used_bytes=status.used_bytes if status is not None and fresh else None,
        placement=look.reality.placement,
        placement_verified=look.reality.placement_verified,
        segment=status.segment if status is not None and fresh else "",
        findings=findings[:MOST_FINDINGS],
        message=trouble or message,
    )


def _phase(record: Record, look: Look, findings: tuple[Finding, ...]) -> tuple[UnitPhase, str]:
    status = look.keeper.status
    error = status.error if status is not None else look.keeper.trouble
    if record.phase is RecordPhase.LOST:
        return UnitPhase.LOST, record.message
    if record.phase is RecordPhase.RELEASING or record.unit.release is not Release.NONE:
        return UnitPhase.DRAINING, error
    if record.phase is RecordPhase.BOUND:
        bad = [finding for finding in findings if finding.degrades]
        return (UnitPhase.DEGRADED, bad[0].message) if bad else (UnitPhase.BOUND, error)
    if not look.keeper.alive:
        return UnitPhase.ALLOCATING, error or "waiting for the unit's keeper"
    if status is not None and status.phase is KeeperPhase.FAILED:
        return UnitPhase.FAILED, error
    return UnitPhase.ALLOCATING, error


def _of_keeper(record: Record, look: Look, now_boottime_ns: int) -> tuple[Finding, ...]:
    """Findings about the keeper of a unit that it once held."""
    if record.phase is not RecordPhase.BOUND:
        return ()
    found: list[Finding] = []
    status = look.keeper.status
    if not look.keeper.alive or status is None:
        found.append(
            Finding(
                "KeeperSilent",
                f"no heartbeat of the keeper within {KEEPER_SILENT_SECONDS:g} s; the memory is kept",
            )
        )
    elif status.phase is not KeeperPhase.READY:
        found.append(Finding("KeeperNotReady", f"the keeper is {status.phase}: {status.error}"))
    if status is not None and status.contents_lost_count:
        age_seconds = (now_boottime_ns - status.contents_lost_boottime_ns) / NANOSECONDS
        if age_seconds < CONTENTS_LOST_SHOWN_SECONDS:
            text = f"{status.contents_lost_count} times so far, last: {status.contents_lost_reason}"
            found.append(Finding("StoreContentsLost", text, degrades=False))
    return tuple(found)
