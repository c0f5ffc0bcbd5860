"""A model world for failover: hosts with engines, routers, people, and operators that die.

Hosts know the truth: which engine serves which slot under which epoch. Operators know what they were told.
"""

# ruff: noqa: ANN401 - parts of manifests are given as they are written in YAML

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode, labels
from kvpool.api.common import LabelSelector, Mode
from kvpool.api.remap import RemapPhase
from kvpool.api.supernode import EvidenceClass, Maintenance
from kvpool.model import decisions as d
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant, moment_text
from kvpool.model.observations import (
    AgentView,
    DeviceView,
    EngineView,
    EvidenceView,
    LeaseView,
    NodeFact,
    OutputAck,
    PeerWord,
    PodFact,
    SeatPhase,
    SeatView,
)
from kvpool.model.snapshot import Snapshot, Uninstall
from kvpool.plan.failover import failover_plan
from tests.builders.failover_api import Api
from tests.builders.failover_hosts import START, Engine, Host
from tests.builders.failover_operator import Operator

BEGIN = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)
TTL = 10.0
SKEW = 1.0
NAMESPACE = "inference"
GROUP = ObjectKey(NAMESPACE, "chat")
OUTPUT = "edge"

Planner = Callable[[Snapshot, Instant], d.Plan]


class World:
    """Everything. Time passes only when told."""

    def __init__(self, planner: Planner = failover_plan) -> None:
        self.now_seconds = START
        self.api = Api()
        self.hosts: dict[str, Host] = {}
        self.planner = planner
        self.mode_cap = Mode.ENFORCE
        self.paused = False
        self.uninstall: Uninstall | None = None
        self.api_back_since = 0.0
        self.router: dict[str, int] = {}
        self.router_at = START
        self.router_answers = True
        self.revision = 0
        self._acked: OutputAck | None = None
        self.extra_pods: list[PodFact] = []
        self.unready: set[str] = set()
        self.outside: set[str] = set()
        """Hosts that belong to no Supernode."""
        self.selectors: dict[str, LabelSelector | None] = {}
        self.unread: set[str] = set()
        """Supernodes that are there and cannot be read."""
        self.fence_level = "Process"
        """How surely agents stop engines."""
        self.operator: Operator

    # -- building

    def with_host(self, name: str, *, board: str, rack: str, devices: int = 1) -> World:
        ids = [f"acc-{number}" for number in range(devices)]
        self.hosts[name] = Host(
            name, board, rack, {one: [] for one in ids}, {one: f"{name}-{one}-uuid" for one in ids}
        )
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": self.api.version()}
        self.api.kvnodes[name] = KVNode.parse({"metadata": metadata, "status": {"bootID": f"{name}-boot-1"}})
        return self

    def with_engine(
        self,
        host: str,
        device: str,
        *,
        standby: bool = False,
        name: str = "",
        app: str = "",
        more: tuple[str, ...] = (),
    ) -> World:
        role = app or ("standby" if standby else "decode")
        key = ObjectKey(NAMESPACE, name or f"{role}-{host}-{device}")
        pod = PodFact(
            key=key,
            uid=f"uid-{key.name}",
            labels={"app": role},
            node=host,
            address="10.0.0.1",
            phase="Running",
            ready=True,
            deleting=False,
            memory_request_bytes=0,
        )
        self.hosts[host].engines.append(Engine(pod, (device, *more)))
        return self

    def with_supernode(self, **spec: Any) -> World:
        metadata = {"name": "sn-a", "uid": "uid-sn-a", "generation": 1}
        body = {"mode": "Enforce", "nodeSelector": {"matchLabels": {"sn": "a"}}} | spec
        self.api.supernodes["sn-a"] = Supernode.parse({"metadata": metadata, "spec": body})
        return self

    def with_group(self, *, instances: int | None = 1, routing: Any = None, **decode: Any) -> World:
        self.api.pools[ObjectKey(NAMESPACE, "chat")] = KVPool.parse(
            {"metadata": {"name": "chat", "namespace": NAMESPACE}, "spec": {"store": {"none": {}}}}
        )
        role: dict[str, Any] = {
            "podSelector": {"matchLabels": {"app": "decode"}},
            "attach": "Standby",
            "standby": {"podSelector": {"matchLabels": {"app": "standby"}}},
        }
        if instances is not None:
            role |= {"instances": instances}
        output = {"name": OUTPUT, "type": "HTTPRoute", "httpRoute": {"parentRef": {"name": "gateway"}}}
        spec = {
            "mode": "Enforce",
            "poolRef": {"name": "chat"},
            "supernodeRef": {"name": "sn-a"},
            "decode": role | decode,
            "routing": {"outputs": [output]} | (routing or {}),
        }
        metadata = {"name": "chat", "namespace": NAMESPACE, "uid": "uid-chat", "generation": 1}
        self.api.groups[GROUP] = PDGroup.parse({"metadata": metadata, "spec": spec})
        return self

    # -- what neighbours say

    @property
    def now(self) -> Instant:
        return Instant(self.now_seconds, BEGIN + timedelta(seconds=self.now_seconds - START))

    def node_facts(self) -> dict[str, NodeFact]:
        return {
            name: NodeFact(
                name=name,
                uid=f"uid-{name}",
                labels={
                    "sn": "b" if name in self.outside else "a",
                    labels.BOARD: host.board,
                    labels.RACK: host.rack,
                },
                ready=name not in self.unready,
                ready_since=START,
                address="10.0.0.1",
                allocatable_memory_bytes=1 << 40,
            )
            for name, host in self.hosts.items()
        }

    def pods(self) -> dict[ObjectKey, PodFact]:
        engines = [engine.pod for host in self.hosts.values() for engine in host.engines]
        return {pod.key: pod for pod in (*engines, *self.extra_pods)}

    def view_of(self, host: Host, plan_revision: int) -> AgentView:
        words = tuple(
            PeerWord(other.name, other.alive, self.now_seconds, None)
            for other in self.hosts.values()
            if other.name != host.name
        )
        return AgentView(
            node=host.name,
            boot_id=f"{host.name}-boot-{host.boot}",
            incarnation=1,
            agent_version="test",
            pod_uid=f"uid-agent-{host.name}",
            connected=True,
            hello_at=host.hello_at,
            reported_at=self.now_seconds,
            leaving_until=host.leaving_until,
            lease=LeaseView(host.granted_at, TTL, SKEW),
            applied_revision=host.applied_revision,
            highest_operator_epoch=host.highest_operator_epoch,
            roster_revision=1,
            plan_revision=plan_revision,
            seats=tuple(self._seat_view(host, key, phase) for key, phase in sorted(host.seats.items())),
            devices=tuple(
                DeviceView(one, host.uuids[one], _holder(host, one), tuple(found), observed=True)
                for one, found in host.devices.items()
            ),
            engines=tuple(
                EngineView(
                    pod_uid=engine.pod.uid,
                    pod_name=str(engine.pod.key),
                    endpoint=f"{engine.pod.key.name}:8000",
                    devices=engine.devices,
                    standby=engine.pod.labels["app"] == "standby",
                    readiness="EngineReady",
                    slot="",
                    requests_running=0,
                    hbm_kv_bytes=0,
                )
                for engine in host.engines
                if engine.seat is None
            ),
            peers=words,
        )

    def _seat_view(self, host: Host, key: tuple[ObjectKey, int], phase: SeatPhase) -> SeatView:
        engine = next((engine for engine in host.engines if engine.seat == key), None)
        return SeatView(
            slot=key[0],
            epoch=key[1],
            phase=phase,
            pod_uid=engine.pod.uid if engine else "",
            pod_name=str(engine.pod.key) if engine else "",
            endpoint=f"{engine.pod.key.name}:8000" if engine else "",
            fence_level=self.fence_level,
        )

    def acks(self) -> tuple[OutputAck, ...]:
        return (self._acked,) if self._acked is not None else ()

    def take_weights(self, weights: d.Weights) -> None:
        """The router takes a revision; it acknowledges it when it answers."""
        members = {member.slot.name: member.weight for member in weights.members}
        for member in weights.members:
            if member.weight:
                self._check_weight(member)
        if members != self.router:
            self.router, self.router_at = members, self.now_seconds
            self.revision += 1
        if self.router_answers:
            self._acked = OutputAck(
                GROUP, OUTPUT, self.revision, True, self.now_seconds, self.router_at, dict(self.router)
            )

    def _check_weight(self, member: d.SlotWeight) -> None:
        assert member.endpoint, f"{member.slot} has weight {member.weight} and no endpoint"

    # -- what happens

    def start(self) -> World:
        self.operator = self.lead()
        return self

    def lead(self) -> Operator:
        """A new leader: it lists everything, and agents say Hello to it."""
        seen = [kvnode.spec.operator_epoch for kvnode in self.api.kvnodes.values()]
        seen += [slot.spec.operator_epoch for slot in self.api.slots.values()]
        seen += [remap.spec.operator_epoch for remap in self.api.remaps.values()]
        self.api.operator_epoch = 1 + max(self.api.operator_epoch, *seen)
        self.operator = Operator(self, self.api.operator_epoch)
        for host in self.hosts.values():
            if host.alive and host.agent_up:
                host.hello_at = self.now_seconds
        self.operator.hear()
        return self.operator

    def tick(self, seconds: float, *, renew: bool = True) -> World:
        """Time passes: agents renew their leases, and what outlives its lease stops."""
        self.now_seconds += seconds
        for host in self.hosts.values():
            if renew and host.alive and host.agent_up:
                host.granted_at = self.now_seconds
        lost = [host for host in self.hosts.values() if self.lease_lost(host)]
        if 2 * len(lost) <= len(self.hosts):
            for host in lost:
                host.stop_engines()
        return self

    def lease_lost(self, host: Host) -> bool:
        granted = host.granted_at if host.granted_at is not None else START
        return self.now_seconds >= granted + TTL

    def round(self, *, work: bool = True) -> d.Plan:
        """One turn of everything: hosts work, the operator hears, plans, writes and publishes."""
        if work:
            for host in self.hosts.values():
                host.work()
        self.operator.refresh()
        self.operator.hear()
        plan = self.operator.think()
        self.operator.publish()
        while self.operator.act_once():
            pass
        self.operator.publish()
        return plan

    def run(self, seconds: float = 5.0, step: float = 0.5) -> World:
        """Let everything go on for a while."""
        end = self.now_seconds + seconds
        while self.now_seconds < end:
            self.tick(step)
            self.round()
        return self

    # -- faults

    def report(self, host: str, device: str, grade: EvidenceClass, code: str = "79", count: int = 1) -> World:
        at = self.now_seconds
        self.hosts[host].devices[device].append(
            EvidenceView("sim", code, grade, count, at, at, tuple([at] * min(count, 32)))
        )
        return self

    def heal(self, host: str, device: str) -> World:
        self.hosts[host].devices[device].clear()
        return self

    def kill_host(self, host: str) -> World:
        victim = self.hosts[host]
        victim.stop_engines()
        victim.alive = False
        return self

    # -- people

    def set_maintenance(self, hosts: Iterable[str], reason: str = "fan") -> World:
        supernode = self.api.supernodes["sn-a"]
        entries = tuple(Maintenance(node=host, reason=reason) for host in hosts)
        spec = supernode.spec.model_copy(update={"maintenance": entries})
        self.api.supernodes["sn-a"] = supernode.model_copy(update={"spec": spec})
        return self

    def set_instances(self, instances: int) -> World:
        group = self.api.groups[GROUP]
        assert group.spec.decode is not None
        decode = group.spec.decode.model_copy(update={"instances": instances})
        self.api.groups[GROUP] = group.model_copy(
            update={"spec": group.spec.model_copy(update={"decode": decode})}
        )
        return self

    def cancel(self, remap: Remap) -> World:
        spec = remap.spec.model_copy(update={"cancel": True})
        key = ObjectKey(remap.metadata.namespace, remap.metadata.name)
        self.api.remaps[key] = self.api.meta(remap, spec=spec)
        return self

    # -- questions

    def slot(self, name: str = "chat-decode-0") -> EngineSlot:
        return self.api.slots[ObjectKey(NAMESPACE, name)]

    def place(self, name: str = "chat-decode-0") -> str:
        seats = self.slot(name).spec.seats
        return ", ".join(f"{seat.node}/{'+'.join(seat.devices)}" for seat in seats)

    def reason(self, name: str = "chat-decode-0") -> d.Reason:
        """Why the slot moves or holds still, by the newest plan."""
        return dict(self.operator.last.explanations)[f"slot {NAMESPACE}/{name}"]

    def open_remaps(self) -> list[Remap]:
        return [remap for remap in self.api.remaps.values() if not remap.status.phase.is_final]

    def succeeded(self) -> list[Remap]:
        return [remap for remap in self.api.remaps.values() if remap.status.phase is RemapPhase.SUCCEEDED]

    def serving(self) -> list[tuple[str, ObjectKey, int]]:
        return [(host.name, *seat) for host in self.hosts.values() for seat in host.serving()]

    def stamp(self) -> str:
        return moment_text(self.now.wall)


def _holder(host: Host, device: str) -> str:
    engines = (engine.pod.uid for engine in host.engines if device in engine.devices)
    return next(engines, host.held_by.get(device, ""))


def two_racks(planner: Planner = failover_plan) -> World:
    """Four hosts of one device in two racks, one decode engine, a standby on every other host."""
    world = World(planner)
    world.with_host("node-1", board="b1", rack="r1").with_host("node-2", board="b2", rack="r1")
    world.with_host("node-3", board="b3", rack="r2").with_host("node-4", board="b4", rack="r2")
    world.with_engine("node-1", "acc-0")
    for other in ("node-2", "node-3", "node-4"):
        world.with_engine(other, "acc-0", standby=True)
    return world.with_supernode().with_group()
