"""What belongs to one kind alone in an explanation: devices and units of a node, seats of a slot, stages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode
from kvpool.cli.screen import Column, Section, Table
from kvpool.cli.views.figures import UNKNOWN, joined, size_text
from kvpool.cli.views.memory import pool_rows, tier_table
from kvpool.cli.views.own import OwnObject
from kvpool.model.decisions import Reason
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import members_of
from kvpool.plan.draft import Draft
from kvpool.plan.group_slots import slots_of
from kvpool.plan.instances import group_of
from kvpool.plan.judgement import judge
from kvpool.plan.spares import why_not_free
from kvpool.plan.weights import slot_weight


@dataclass(frozen=True, slots=True)
class Details:
    """Sections for people, and the same for programs."""

    sections: Sequence[Section] = ()
    document: Mapping[str, object] = field(default_factory=dict)


def details(item: OwnObject, snapshot: Snapshot, now: Instant) -> Details:
    """Return what is known of the object beside conditions and reasons."""
    match item:
        case KVPool():
            rows = pool_rows([item], now)
            return Details([tier_table("Tiers", "POOL", rows)], {"tiers": rows})
        case KVNode():
            return _node(item, snapshot, now)
        case EngineSlot():
            return _slot(item, snapshot, now)
        case PDGroup():
            return _group(item, snapshot, now)
        case Remap():
            return _remap(item)
        case Supernode():
            return _hosts(sorted(members_of(snapshot, item)), snapshot, now)
        case _:
            return Details()


@dataclass(frozen=True, slots=True)
class HostRow:
    """What is held to be true of a host."""

    node: str
    state: str
    reason: str


def _hosts(nodes: Sequence[str], snapshot: Snapshot, now: Instant) -> Details:
    judgement = judge(snapshot, now)
    rows = [HostRow(node, judgement.host(node).state, _text(judgement.host(node).reason)) for node in nodes]
    columns = (Column("HOST"), Column("STATE"), Column("WHY"))
    cells = [(row.node, row.state, row.reason) for row in rows]
    return Details([Table("Hosts", columns, cells)], {"hosts": rows})


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One device: what the evidence says, who owns it, and why it is no spare (empty: it is one)."""

    device: str
    verdict: str
    reason: str
    owner: str
    no_spare: str


@dataclass(frozen=True, slots=True)
class UnitRow:
    """One unit that is decided for the node."""

    unit: str
    phase: str
    size_bytes: int
    resident_bytes: int | None
    used_bytes: int | None
    findings: str


def _node(kvnode: KVNode, snapshot: Snapshot, now: Instant) -> Details:
    hosts = _hosts([kvnode.metadata.name], snapshot, now)
    devices, units = _devices(kvnode, snapshot, now), _units(kvnode)
    device_columns = (
        Column("DEVICE"),
        Column("VERDICT"),
        Column("OWNER"),
        Column("NO SPARE BECAUSE"),
        Column("EVIDENCE"),
    )
    device_cells = [
        (row.device, row.verdict, row.owner or UNKNOWN, row.no_spare or "it is a spare", row.reason)
        for row in devices
    ]
    unit_columns = (
        Column("UNIT"),
        Column("PHASE"),
        Column("SIZE", right=True),
        Column("RESIDENT", right=True),
        Column("USED", right=True),
        Column("FINDINGS"),
    )
    unit_cells = [
        (
            row.unit,
            row.phase,
            size_text(row.size_bytes),
            size_text(row.resident_bytes),
            size_text(row.used_bytes),
            row.findings or UNKNOWN,
        )
        for row in units
    ]
    sections = [
        *hosts.sections,
        Table("Devices", device_columns, device_cells, "" if devices else "none reported"),
        Table("Units", unit_columns, unit_cells, "" if units else "none decided"),
    ]
    return Details(sections, {**hosts.document, "devices": devices, "units": units})


def _devices(kvnode: KVNode, snapshot: Snapshot, now: Instant) -> list[DeviceRow]:
    draft, node = Draft(snapshot, now), kvnode.metadata.name
    owners = {claim.device: claim.slot for claim in kvnode.spec.claims}
    rows = []
    for device in sorted(kvnode.status.devices, key=lambda device: device.id):
        finding = draft.judgement.device(node, device.id)
        rows.append(
            DeviceRow(
                device=device.id,
                verdict=finding.verdict,
                reason=_text(finding.reason),
                owner=owners.get(device.id, ""),
                no_spare=why_not_free(draft, node, device.id) or "",
            )
        )
    return rows


def _units(kvnode: KVNode) -> list[UnitRow]:
    said = {unit.name: unit for unit in kvnode.status.units}
    rows = []
    for unit in kvnode.spec.units:
        view = said.get(unit.name)
        rows.append(
            UnitRow(
                unit=unit.name,
                phase=view.phase if view is not None else "Unknown",
                size_bytes=unit.size_bytes,
                resident_bytes=view.resident_bytes if view is not None else None,
                used_bytes=view.used_bytes if view is not None else None,
                findings=joined((f"{f.reason}: {f.message}" for f in view.findings), "") if view else "",
            )
        )
    return rows


@dataclass(frozen=True, slots=True)
class SeatRow:
    """One device of one seat, and what is held to be true of it and of its host."""

    place: str
    host: str
    device: str


@dataclass(frozen=True, slots=True)
class WeightRow:
    """The weight a slot is to have by the planning steps, and why; as if its group might act."""

    slot: str
    weight: int
    acknowledged: int
    code: str
    message: str


def _slot(slot: EngineSlot, snapshot: Snapshot, now: Instant) -> Details:
    judgement = judge(snapshot, now)
    seats = [
        SeatRow(
            place=f"{seat.node}/{device}",
            host=f"{judgement.host(seat.node).state}: {judgement.host(seat.node).reason.message}",
            device=f"{finding.verdict}: {finding.reason.message}",
        )
        for seat in slot.spec.seats
        for device in seat.devices
        for finding in (judgement.device(seat.node, device),)
    ]
    columns = (Column("PLACE"), Column("HOST"), Column("DEVICE"))
    cells = [(row.place, row.host, row.device) for row in seats]
    table = Table("Seats", columns, cells, "" if seats else "none: the slot is not bound")
    group = group_of(snapshot, slot)
    weights = _weights([slot], group, snapshot, now) if group is not None else []
    return Details(
        [table, *([_weight_table(weights)] if weights else [])],
        {"epoch": slot.spec.epoch, "seats": seats, "weights": weights},
    )


def _group(group: PDGroup, snapshot: Snapshot, now: Instant) -> Details:
    weights = _weights(slots_of(snapshot, group), group, snapshot, now)
    return Details([_weight_table(weights)], {"weights": weights})


def _weights(
    slots: Sequence[EngineSlot], group: PDGroup, snapshot: Snapshot, now: Instant
) -> list[WeightRow]:
    draft = Draft(snapshot, now)
    return [
        WeightRow(
            slot=str(ObjectKey(slot.metadata.namespace, slot.metadata.name)),
            weight=weight.weight,
            acknowledged=slot.status.weight_acknowledged,
            code=weight.reason.code,
            message=weight.reason.message,
        )
        for slot in slots
        for weight in (slot_weight(draft, group, slot),)
    ]


def _weight_table(rows: Sequence[WeightRow]) -> Table:
    columns = (
        Column("SLOT"),
        Column("WEIGHT", right=True),
        Column("IN FORCE", right=True),
        Column("REASON"),
        Column("WHY"),
    )
    cells = [(row.slot, str(row.weight), str(row.acknowledged), row.code, row.message) for row in rows]
    return Table("Weights", columns, cells, "" if rows else "the group has no slots")


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage of a move that is over."""

    stage: str
    ended_at: str
    since_evidence: str
    detail: str


def _remap(remap: Remap) -> Details:
    rows = [
        StageRow(stage.name, stage.ended_at, stage.seconds, stage.detail) for stage in remap.status.stages
    ]
    columns = (Column("STAGE"), Column("OVER AT"), Column("SINCE EVIDENCE", right=True), Column("DETAIL"))
    cells = [(row.stage, row.ended_at, row.since_evidence or UNKNOWN, row.detail or UNKNOWN) for row in rows]
    table = Table("Stages", columns, cells, "" if rows else "none written down yet")
    return Details([table], {"cause": remap.spec.cause, "phase": remap.status.phase, "stages": rows})


def _text(reason: Reason) -> str:
    return f"{reason.code}: {reason.message}"
