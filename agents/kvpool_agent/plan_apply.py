"""From plan, journal and reality to the next steps: pure, level-triggered, the same after any restart."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kvpool_agent.units import KeeperView, Reality, Record, RecordPhase, UnitPlan
from kvpool_keeper.contract import MEMORY_FOLDER, KeeperPhase, KeeperSpec, Release

GIVEN_BACK = frozenset({KeeperPhase.RELEASED, KeeperPhase.STOPPED})
HELD = frozenset({RecordPhase.PREPARED, RecordPhase.BOUND, RecordPhase.LOST})


class StepKind(StrEnum):
    """What the agent does next with one unit."""

    PREPARE = "Prepare"
    """Make the unit's place, write-ahead."""
    READOPT = "Readopt"
    """The place is there but its record is not: make the record anew if all agrees."""
    TELL = "Tell"
    """Write the keeper's spec."""
    BIND = "Bind"
    """The keeper holds everything and the kernel agrees: record it."""
    LOSE = "Lose"
    """The memory is gone: record it."""
    REMOVE = "Remove"
    """The keeper gave it back: remove what is left."""
    FORGET = "Forget"
    """Nothing is left and nothing is wanted: drop the record."""


@dataclass(frozen=True)
class Step:
    """One step. `record` is None when there is no record yet."""

    kind: StepKind
    unit: UnitPlan
    record: Record | None = None
    spec: KeeperSpec | None = None
    message: str = ""


@dataclass(frozen=True)
class Look:
    """What was seen of one recorded unit."""

    reality: Reality
    keeper: KeeperView
    spec: KeeperSpec | None
    """As written for the keeper."""


@dataclass(frozen=True)
class Situation:
    """All that the next steps follow from.

    `planned` is None before the first plan. `orphans` are keys of objects that carry our name but have no
    record. `failing` are keys whose preparation failed a moment ago.
    """

    planned: Mapping[str, UnitPlan] | None
    records: Mapping[str, Record]
    looks: Mapping[str, Look]
    orphans: frozenset[str]
    failing: frozenset[str]
    hold: bool
    boot_id: str


def plan_by_name(units: Iterable[UnitPlan]) -> dict[str, UnitPlan]:
    """Index a plan; of one name, the highest generation counts."""
    return {unit.name: unit for unit in sorted(units, key=lambda unit: unit.generation)}


def next_steps(situation: Situation) -> tuple[Step, ...]:
    """Return at most one step a unit. No step left means that the node is as the plan says, or waits."""
    records = situation.records
    of_records = (_of_record(situation, records[key]) for key in sorted(records.keys() - situation.failing))
    new = (unit for unit in (situation.planned or {}).values() if unit.key not in records)
    steps = (*of_records, *(_of_new(situation, unit) for unit in new))
    return tuple(step for step in steps if step is not None)


def wanted_release(planned: Mapping[str, UnitPlan] | None, record: Record) -> Release:
    """Say how a recorded unit is to be given back.

    A unit that the plan does not name at all is kept: only a release that was asked for takes memory away. A
    unit of an older generation than the plan's is drained, whatever the journal said of it.
    """
    named = (planned or {}).get(record.unit.name)
    if named is None:
        return record.unit.release
    if named.generation > record.unit.generation:
        return Release.DRAIN
    return named.release if named.generation == record.unit.generation else record.unit.release


def keeper_spec(record: Record) -> KeeperSpec:
    """Return what the keeper of a recorded unit is told."""
    unit = record.unit
    in_mount = record.file.endswith(f"/{record.key}/{MEMORY_FOLDER}/{_file_name(record)}")
    return KeeperSpec(
        unit=unit.name,
        generation=unit.generation,
        size_bytes=unit.size_bytes,
        file=f"{MEMORY_FOLDER}/{_file_name(record)}" if in_mount else record.file,
        prefault=unit.backend != "file",
        adopt=unit.adopt,
        boot_id=record.boot_id if record.volatile else "",
        mooncake=unit.mooncake,
        release=unit.release,
        unmount_at_deadline=unit.unmount_at_deadline,
    )


def follow(planned: Mapping[str, UnitPlan] | None, record: Record) -> Record:
    """Return the record with what a plan may change without a new generation: release and fencing."""
    named = (planned or {}).get(record.unit.name)
    same = named is not None and named.generation == record.unit.generation
    unit = dataclasses.replace(
        record.unit,
        release=wanted_release(planned, record),
        unmount_at_deadline=named.unmount_at_deadline if named and same else record.unit.unmount_at_deadline,
    )
    return dataclasses.replace(record, unit=unit)


def conflict(planned: Mapping[str, UnitPlan] | None, record: Record) -> str:
    """Say what a plan tries to change without a new generation; empty when nothing."""
    named = (planned or {}).get(record.unit.name)
    if named is None or named.generation != record.unit.generation:
        return ""
    for field in ("size_bytes", "backend", "path", "numa_node", "mooncake", "adopt"):
        have, want = getattr(record.unit, field), getattr(named, field)
        if have != want:
            return f"generation {named.generation} has {field} {have!r}; {want!r} needs a new generation"
    return ""


def _of_record(situation: Situation, record: Record) -> Step | None:
    look = situation.looks.get(record.key)
    if record.phase is RecordPhase.RELEASED:
        return _forget_unless_named(situation, record)
    unseen = look is not None and look.reality.unseen  # what is on it would be left behind as a stranger
    if record.phase is RecordPhase.RELEASING and unseen:
        return None
    if record.phase in (RecordPhase.RELEASING, RecordPhase.PREPARING):  # what could not be undone at once
        return Step(StepKind.REMOVE, record.unit, record)
    if record.phase not in HELD or look is None:
        return None
    if record.phase is not RecordPhase.LOST and (why := _lost(situation, record, look)):
        return Step(StepKind.LOSE, record.unit, record, message=why)
    followed = follow(situation.planned, record)
    spec = keeper_spec(followed)
    releases = spec.release is not Release.NONE
    if look.spec != spec and (record.phase is not RecordPhase.LOST or (releases and look.spec is not None)):
        return Step(StepKind.TELL, followed.unit, followed, spec)
    if releases:
        return Step(StepKind.REMOVE, followed.unit, followed) if _given_back(look) and not unseen else None
    if record.phase is RecordPhase.PREPARED and _holds_all(record, look):
        return Step(StepKind.BIND, record.unit, record)
    return None


def _forget_unless_named(situation: Situation, record: Record) -> Step | None:
    """Keep saying Released until the plan stops to name that generation."""
    if situation.planned is None:
        return None
    named = situation.planned.get(record.unit.name)
    if named is not None and named.generation == record.unit.generation:
        return None
    return Step(StepKind.FORGET, record.unit, record)


def _of_new(situation: Situation, unit: UnitPlan) -> Step | None:
    if unit.key in situation.failing:
        return None
    if unit.key in situation.orphans:
        return Step(StepKind.READOPT, unit)
    others_stand = any(
        record.unit.name == unit.name and record.phase is not RecordPhase.RELEASED
        for record in situation.records.values()
    )
    if unit.release is not Release.NONE or situation.hold or others_stand:
        return None
    return Step(StepKind.PREPARE, unit)


def _lost(situation: Situation, record: Record, look: Look) -> str:
    if record.volatile and record.boot_id != situation.boot_id:
        return f"the node was booted anew: boot {situation.boot_id}, bound was {record.boot_id}"
    if look.reality.unseen:
        return ""
    if not look.reality.exists:
        return "; ".join(finding.message for finding in look.reality.findings) or "its place is gone"
    if record.phase is RecordPhase.BOUND and look.reality.file_bytes < 0:
        return f"{record.file} was removed"
    return ""


def _given_back(look: Look) -> bool:
    """Whether no keeper holds the unit: it said so, or is gone. A stuck one is found by its mappings."""
    status = look.keeper.status
    return not look.keeper.alive or status is None or status.phase in GIVEN_BACK


def _holds_all(record: Record, look: Look) -> bool:
    status = look.keeper.status
    return (
        look.keeper.alive
        and status is not None
        and status.phase is KeeperPhase.READY
        and status.generation == record.unit.generation
        and look.reality.file_bytes == record.unit.size_bytes
        and look.reality.resident_bytes >= record.unit.size_bytes
    )


def _file_name(record: Record) -> str:
    return record.file.rpartition("/")[2]
