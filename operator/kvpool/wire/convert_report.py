"""Reading reports of what a node holds. Times travel as ages, so clocks need not agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, get_args

from kvpool.api.kvnode import UnitPhase
from kvpool.api.supernode import EvidenceClass, FenceLevel
from kvpool.api.tierbudget import Backend, BudgetTierName
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import (
    HOLDER_UNKNOWN,
    DeviceView,
    EngineView,
    EvidenceView,
    SeatPhase,
    SeatView,
    SourceView,
    UnitView,
)
from kvpool.wire import convert_bounds as read
from kvpool.wire.v1alpha1 import agent_pb2 as pb

_TIERS = get_args(BudgetTierName)
MAX_EVIDENCE = 64
MAX_RECENT = 32
MAX_HOLDER_PODS = 8
_MAX_FINDINGS = 64
_MAX_LOOPS = 32

_SEAT_PHASES: Mapping[int, SeatPhase] = {
    pb.SEAT_STATE_WAITING: SeatPhase.WAITING,
    pb.SEAT_STATE_ATTACHED: SeatPhase.ATTACHED,
    pb.SEAT_STATE_STOPPING: SeatPhase.STOPPING,
    pb.SEAT_STATE_RELEASED: SeatPhase.RELEASED,
}


@dataclass(frozen=True, slots=True)
class ReportData:
    """Everything an agent sees. `taken_at` is when the oldest figure was taken (monotonic seconds)."""

    applied_revision: int
    taken_at: float
    units: tuple[UnitView, ...] = ()
    seats: tuple[SeatView, ...] = ()
    devices: tuple[DeviceView, ...] = ()
    sources: tuple[SourceView, ...] = ()
    engines: tuple[EngineView, ...] = ()
    refused_epochs: int = 0
    holders_at: float | None = None
    retired: bool = False
    loop_age_seconds: Mapping[str, float] = field(default_factory=dict)
    name: ClassVar[str] = "report"


def report_from_wire(message: pb.Report, now: float) -> ReportData:
    """Read a report that arrived at `now` (monotonic seconds). Raises MalformedError."""
    units = tuple(_unit(f"units[{i}]", m) for i, m in enumerate(read.items("units", message.units)))
    devices = tuple(
        _device(f"devices[{i}]", m, now) for i, m in enumerate(read.items("devices", message.devices))
    )
    sources = tuple(_source(f"sources[{i}]", m) for i, m in enumerate(read.items("sources", message.sources)))
    read.distinct("units", units, lambda unit: unit.name)
    read.distinct("devices", devices, lambda device: device.id)
    read.distinct("sources", sources, lambda source: source.key)
    loops = read.items("loop_age_seconds", message.loop_age_seconds, _MAX_LOOPS)
    return ReportData(
        applied_revision=read.count("applied_revision", message.applied_revision),
        taken_at=read.moment(now, message.age_ms),
        units=units,
        seats=tuple(_seat(f"seats[{i}]", m) for i, m in enumerate(read.items("seats", message.seats))),
        devices=devices,
        sources=sources,
        engines=tuple(
            _engine(f"engines[{i}]", m) for i, m in enumerate(read.items("engines", message.engines))
        ),
        refused_epochs=read.count("refused_epochs", message.refused_epochs),
        loop_age_seconds={
            read.identifier("loop_age_seconds", name, 63): read.seconds(
                f"loop_age_seconds[{name}]", message.loop_age_seconds[name]
            )
            for name in loops
        },
        holders_at=read.moment(now, message.holders_age_ms) if message.HasField("holders_age_ms") else None,
        retired=message.retired,
    )


def evidence_from_wire(path: str, message: pb.Evidence, now: float) -> EvidenceView:
    """Read one finding; the device it is about is read apart. Raises MalformedError."""
    recent = read.items(f"{path}.recent_age_ms", message.recent_age_ms, MAX_RECENT)
    return EvidenceView(
        source=read.identifier(f"{path}.source", message.source, 63, required=True),
        code=read.identifier(f"{path}.code", message.code, 63, required=True),
        declared_class=read.word(f"{path}.evidence_class", message.evidence_class, EvidenceClass),
        count=read.count(f"{path}.count", message.count),
        first_seen=read.moment(now, message.first_age_ms),
        last_seen=read.moment(now, message.last_age_ms),
        recent=tuple(sorted(read.moment(now, age) for age in recent)),
    )


def _unit(path: str, message: pb.UnitReport) -> UnitView:
    findings = read.items(f"{path}.findings", message.findings, _MAX_FINDINGS)
    placement = read.items(f"{path}.placement", message.placement)
    return UnitView(
        name=read.identifier(f"{path}.name", message.name, required=True),
        generation=read.count(f"{path}.generation", message.generation),
        phase=read.word(f"{path}.phase", message.phase, UnitPhase),
        size_bytes=read.count(f"{path}.size_bytes", message.size_bytes),
        resident_bytes=read.count(f"{path}.resident_bytes", message.resident_bytes),
        used_bytes=(
            read.count(f"{path}.used_bytes", message.used_bytes) if message.HasField("used_bytes") else None
        ),
        placement={
            read.numa_node(f"{path}.placement", node): read.count(
                f"{path}.placement[{node}]", message.placement[node]
            )
            for node in placement
        },
        placement_verified=message.placement_verified,
        segment=read.identifier(f"{path}.segment", message.segment),
        findings=tuple(
            (read.identifier(f"{path}.findings.reason", finding.reason, 64), read.text(finding.message))
            for finding in findings
        ),
        message=read.text(message.message),
    )


def _seat(path: str, message: pb.SeatReport) -> SeatView:
    phase = _SEAT_PHASES.get(message.state)
    if phase is None:
        raise read.MalformedError(f"{path}.state", f"{message.state} is not a seat state")
    level = message.fence_level
    return SeatView(
        slot=_object_key(f"{path}.slot", message.slot),
        epoch=read.count(f"{path}.epoch", message.epoch),
        phase=phase,
        pod_uid=read.identifier(f"{path}.pod_uid", message.pod_uid, read.MAX_UID),
        pod_name=read.identifier(f"{path}.pod_name", message.pod_name, read.MAX_NAMESPACED_NAME),
        endpoint=read.identifier(f"{path}.endpoint", message.endpoint),
        fence_level=read.word(f"{path}.fence_level", level, FenceLevel).value if level else "",
    )


def _device(path: str, message: pb.DeviceReport, now: float) -> DeviceView:
    evidence = tuple(
        evidence_from_wire(f"{path}.evidence[{i}]", m, now)
        for i, m in enumerate(read.items(f"{path}.evidence", message.evidence, MAX_EVIDENCE))
    )
    read.distinct(f"{path}.evidence", evidence, lambda e: (e.source, e.code))
    uid = read.identifier(f"{path}.holder_pod_uid", message.holder_pod_uid, read.MAX_UID)
    pods = tuple(
        _object_key(f"{path}.holder_pods", name)
        for name in read.items(f"{path}.holder_pods", message.holder_pods, MAX_HOLDER_PODS)
    )
    read.distinct(f"{path}.holder_pods", pods, str)
    unknown = message.holder_unknown or len(pods) > 1
    return DeviceView(
        id=read.identifier(f"{path}.id", message.id, 128, required=True),
        uuid=read.identifier(f"{path}.uuid", message.uuid, 128),
        holder=HOLDER_UNKNOWN if unknown else str(pods[0]) if pods else uid,
        holder_pods=pods,
        evidence=evidence,
        observed=message.observed,
    )


def _source(path: str, message: pb.SourceReport) -> SourceView:
    return SourceView(
        key=read.identifier(f"{path}.key", message.key, required=True),
        tier=read.one_of(f"{path}.tier", message.tier, _TIERS),
        backend=read.word(f"{path}.backend", message.backend, Backend).value,
        numa_node=read.numa_node(f"{path}.numa_node", message.numa_node),
        capacity_bytes=read.count(f"{path}.capacity_bytes", message.capacity_bytes),
        free_bytes=read.count(f"{path}.free_bytes", message.free_bytes),
    )


def _engine(path: str, message: pb.EngineReport) -> EngineView:
    return EngineView(
        pod_uid=read.identifier(f"{path}.pod_uid", message.pod_uid, read.MAX_UID, required=True),
        pod_name=read.identifier(f"{path}.pod_name", message.pod_name, read.MAX_NAMESPACED_NAME),
        endpoint=read.identifier(f"{path}.endpoint", message.endpoint),
        devices=tuple(
            read.identifier(f"{path}.devices", device, 128, required=True)
            for device in read.items(f"{path}.devices", message.devices)
        ),
        standby=message.standby,
        readiness=read.identifier(f"{path}.readiness", message.readiness, 63),
        slot=read.identifier(f"{path}.slot", message.slot, read.MAX_NAMESPACED_NAME),
        requests_running=read.count(f"{path}.requests_running", message.requests_running),
        hbm_kv_bytes=read.count(f"{path}.hbm_kv_bytes", message.hbm_kv_bytes),
    )


def _object_key(path: str, value: str) -> ObjectKey:
    """Read `namespace/name`. Raises MalformedError."""
    namespace, _, name = read.identifier(path, value, read.MAX_NAMESPACED_NAME).partition("/")
    if not namespace or not name or "/" in name:
        raise read.MalformedError(path, f"{value!r} is not namespace/name")
    return ObjectKey(namespace, name)
