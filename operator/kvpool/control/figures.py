"""Turns plans and snapshots into metric values; series of what is gone are removed."""

from collections.abc import Iterable, Mapping

from prometheus_client import Gauge

from kvpool.api.conditions import ConditionType, find_condition
from kvpool.api.kvpool import KVPoolStatus
from kvpool.api.quantity import parse_quantity
from kvpool.api.remap import Remap, RemapPhase
from kvpool.api.supernode import SupernodeStatus
from kvpool.control.metrics import OperatorMetrics
from kvpool.model import decisions as d
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import parse_moment
from kvpool.model.observations import OutputAck
from kvpool.model.snapshot import Snapshot

_STATES = ("declared", "admitted", "bound", "used", "foreign", "unknown")


class Figures:
    """Sets gauges from what was planned; counts what newly happened."""

    def __init__(self, metrics: OperatorMetrics) -> None:
        self._metrics = metrics
        self._lost_at: dict[ObjectKey, float | None] = {}
        self._finished: set[str] | None = None  # UIDs; None until the first look, which counts nothing

    def capacity(self, snapshot: Snapshot, plan: d.Plan) -> None:
        """Pool bytes and their age, shortfall, lost store contents."""
        metrics = self._metrics
        _clear(metrics.pools.bytes, metrics.pools.observed_at, metrics.pools.bind_shortfall)
        _clear(metrics.pools.sessions, metrics.pools.objects_lost)
        # A status that need not be written is in no action: what was written last holds.
        statuses = {key: pool.status for key, pool in snapshot.pools.items()}
        for action in plan.actions:
            if isinstance(action, d.WriteStatus) and isinstance(action.status, KVPoolStatus):
                statuses[action.key] = action.status
        for key, status in statuses.items():
            self._pool(key, status)
        self._losses(snapshot)

    def _losses(self, snapshot: Snapshot) -> None:
        """Count losses from 0 on: Prometheus takes a series that begins at 1 for one that never rose."""
        for key in self._lost_at.keys() - snapshot.stores.keys():
            del self._lost_at[key]
            self._metrics.pools.contents_lost.remove(key.namespace, key.name)
        for key, store in snapshot.stores.items():
            counter = self._metrics.pools.contents_lost.labels(key.namespace, key.name)
            if store.keys_lost_at is not None and self._lost_at.get(key) != store.keys_lost_at:
                counter.inc()
            self._lost_at[key] = store.keys_lost_at

    def _pool(self, key: ObjectKey, status: KVPoolStatus) -> None:
        lost = find_condition(status.conditions, ConditionType.STORE_CONTENTS_LOST)
        is_lost = lost is not None and lost.status == "True"
        self._metrics.pools.objects_lost.labels(key.namespace, key.name).set(int(is_lost))
        observed = [tier.observed_at for tier in status.tiers if tier.observed_at]
        if observed:
            oldest = min(parse_moment(text) for text in observed)
            self._metrics.pools.observed_at.labels(key.namespace, key.name).set(oldest.timestamp())
        if status.sessions is not None and status.sessions.limited_by is not None:
            at_limit = (key.namespace, key.name, status.sessions.limited_by.value)
            self._metrics.pools.sessions.labels(*at_limit).set(status.sessions.capacity)
        for tier in status.tiers:
            at = (key.namespace, key.name, tier.name)
            sizes = {state: parse_quantity(getattr(tier, state)) for state in _STATES}
            for state, size_bytes in sizes.items():
                self._metrics.pools.bytes.labels(*at, state).set(size_bytes)
            shortfall = max(0, sizes["admitted"] - sizes["bound"])
            self._metrics.pools.bind_shortfall.labels(*at).set(shortfall)

    def failover(self, snapshot: Snapshot, plan: d.Plan) -> None:
        """Slots, spares, devices, moves."""
        metrics = self._metrics
        _clear(
            metrics.slots.serving,
            metrics.slots.bound,
            metrics.slots.weight,
            metrics.supernodes.spares,
            metrics.supernodes.devices,
            metrics.moves.blocked,
        )
        for key, slot in snapshot.slots.items():
            at = (key.namespace, slot.spec.pd_group, key.name)
            serving = find_condition(slot.status.conditions, ConditionType.SERVING)
            metrics.slots.serving.labels(*at).set(int(serving is not None and serving.status == "True"))
            metrics.slots.bound.labels(*at).set(int(bool(slot.spec.seats)))
            metrics.slots.weight.labels(*at).set(slot.status.weight_asked)
        supernodes = {name: supernode.status for name, supernode in snapshot.supernodes.items()}
        for action in plan.actions:
            if isinstance(action, d.WriteStatus) and isinstance(action.status, SupernodeStatus):
                supernodes[action.key.name] = action.status
        for name, status in supernodes.items():
            self._supernode(name, status)
        self._moves(snapshot)

    def _moves(self, snapshot: Snapshot) -> None:
        finals = {
            remap.metadata.uid: remap for remap in snapshot.remaps.values() if remap.status.phase.is_final
        }
        if self._finished is not None:
            for uid in finals.keys() - self._finished:
                self._finish(finals[uid])
        self._finished = set(finals)
        blocked: dict[str, int] = {}
        for remap in snapshot.remaps.values():
            if remap.status.phase is RemapPhase.BLOCKED:
                blocked[remap.status.blocked_reason] = blocked.get(remap.status.blocked_reason, 0) + 1
        for reason, count in blocked.items():
            self._metrics.moves.blocked.labels(reason).set(count)

    def _supernode(self, name: str, status: SupernodeStatus) -> None:
        for state in ("ready", "reserved", "floor"):
            self._metrics.supernodes.spares.labels(name, state).set(getattr(status.spares, state))
        for state in ("active", "spare", "faulty", "unknown"):
            self._metrics.supernodes.devices.labels(name, state).set(getattr(status.devices, state))

    def _finish(self, remap: Remap) -> None:
        self._metrics.moves.finished.labels(remap.spec.kind.value, remap.status.phase.value).inc()
        first = parse_moment(remap.spec.first_evidence_at)
        for stage in remap.status.stages:
            seconds = (parse_moment(stage.ended_at) - first).total_seconds()
            self._metrics.moves.stage_seconds.labels(stage.name.value).observe(max(0.0, seconds))

    def routes(self, wanted: Mapping[tuple[ObjectKey, str], int], acks: Iterable[OutputAck]) -> None:
        """Which revision each output is to carry, and which it is known to carry."""
        gauge = self._metrics.slots.route_revision
        gauge.clear()
        for (group, output), number in wanted.items():
            gauge.labels(group.namespace, group.name, output, "asked").set(number)
        for ack in acks:
            gauge.labels(ack.group.namespace, ack.group.name, ack.output, "acknowledged").set(ack.revision)

    def fleet(self, snapshot: Snapshot) -> None:
        """Connected agents."""
        connected = sum(1 for view in snapshot.agents.values() if view.connected)
        self._metrics.agents.connected.set(connected)


def _clear(*gauges: Gauge) -> None:
    for gauge in gauges:
        gauge.clear()
