"""A model world for failover: an API server with versions, hosts with engines, routers, and operators that die.

Hosts know the truth: which engine serves which slot under which epoch. Operators know what they were told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode, labels
from kvpool.api.common import Mode
from kvpool.api.remap import RemapPhase, StageName
from kvpool.api.supernode import EvidenceClass, Maintenance
from kvpool.model import decisions as d
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant, moment_text
from kvpool.model.nodeplan import NodePlanData
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
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.plan.failover import failover_plan
from kvpool.plan.node_plan import node_plan
from kvpool.rules.epochs import next_operator_epoch, sequence_of

BEGIN = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)
START = 1000.0
TTL = 10.0
SKEW = 1.0
NAMESPACE = "inference"
GROUP = ObjectKey(NAMESPACE, "chat")
OUTPUT = "edge"

Planner = Callable[[Snapshot, Instant], d.Plan]


class ConflictError(Exception):
    """The API server refused a write: the object moved, exists, is gone, or a rule forbids it."""


class Api:
    """Objects with resourceVersions, and the rules that the API server itself enforces."""

    def __init__(self) -> None:
        self.groups: dict[ObjectKey, PDGroup] = {}
        self.supernodes: dict[str, Supernode] = {}
        self.pools: dict[ObjectKey, KVPool] = {}
        self.kvnodes: dict[str, KVNode] = {}
        self.slots: dict[ObjectKey, EngineSlot] = {}
        self.remaps: dict[ObjectKey, Remap] = {}
        self.operator_epoch = 0
        """Annotation of the leader Lease."""
        self.writes: list[tuple[str, str]] = []
        """Verb-like name and object of each write that was accepted."""
        self._version = 0

    def version(self) -> str:
        self._version += 1
        return str(self._version)

    def meta(self, obj: Any, **changes: Any) -> Any:
        metadata = obj.metadata.model_copy(update={"resource_version": self.version()})
        return obj.model_copy(update={"metadata": metadata, **changes})

    def write(self, action: d.Action, operator_epoch: int, now: Instant) -> None:
        """Carry out one decision of a leader of that epoch, or refuse it. Raises ConflictError."""
        getattr(self, f"_{type(action).__name__}")(action, operator_epoch, now)
        target = getattr(action, "key", None) or getattr(action, "node", "")
        self.writes.append((type(action).__name__, str(target)))

    def _CreateSlot(self, action: d.CreateSlot, operator_epoch: int, now: Instant) -> None:
        _refuse_if(action.key in self.slots, f"{action.key} exists")
        metadata = {
            "name": action.key.name,
            "namespace": action.key.namespace,
            "uid": f"uid-{action.key.name}-{self.version()}",
            "resourceVersion": self.version(),
            "creationTimestamp": now.text(),
            "finalizers": [labels.FENCE_FINALIZER],
        }
        slot = EngineSlot.parse({"metadata": metadata, "spec": action.spec.dump()})
        self.slots[action.key] = slot

    def _DeleteSlot(self, action: d.DeleteSlot, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        _refuse_if(slot.metadata.uid != action.uid, "another incarnation")
        metadata = slot.metadata.model_copy(
            update={"deletion_timestamp": now.text(), "resource_version": self.version()}
        )
        self.slots[action.key] = slot.model_copy(update={"metadata": metadata})

    def _ForgetSlot(self, action: d.ForgetSlot, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        _refuse_if(slot.metadata.resource_version != action.resource_version, "moved")
        del self.slots[action.key]
        self.remaps = {key: remap for key, remap in self.remaps.items() if remap.spec.slot != action.key.name}

    def _OpenRemap(self, action: d.OpenRemap, operator_epoch: int, now: Instant) -> None:
        _refuse_if(action.key in self.remaps, f"{action.key} exists")
        metadata = {
            "name": action.key.name,
            "namespace": action.key.namespace,
            "resourceVersion": self.version(),
            "creationTimestamp": now.text(),
        }
        spec = action.spec.dump() | {"operatorEpoch": operator_epoch}
        self.remaps[action.key] = Remap.parse({"metadata": metadata, "spec": spec})

    def _kvnode(self, node: str, version: str, operator_epoch: int) -> KVNode:
        kvnode = self.kvnodes[node]
        _refuse_if(kvnode.metadata.resource_version != version, f"KVNode {node} moved")
        _refuse_if(operator_epoch < kvnode.spec.operator_epoch, "operatorEpoch may not fall")
        return kvnode

    def _ClaimDevices(self, action: d.ClaimDevices, operator_epoch: int, now: Instant) -> None:
        kvnode = self._kvnode(action.node, action.resource_version, operator_epoch)
        taken = {claim.device for claim in action.claims}
        claims = (*(c for c in kvnode.spec.claims if c.device not in taken), *action.claims)
        spec = kvnode.spec.model_copy(update={"claims": claims, "operator_epoch": operator_epoch})
        self.kvnodes[action.node] = self.meta(kvnode, spec=spec)

    def _ReleaseClaims(self, action: d.ReleaseClaims, operator_epoch: int, now: Instant) -> None:
        kvnode = self._kvnode(action.node, action.resource_version, operator_epoch)
        lifted = {*action.lift_quarantine, *(entry.device for entry in action.quarantine)}
        spec = kvnode.spec.model_copy(
            update={
                "claims": tuple(c for c in kvnode.spec.claims if c.device not in action.devices),
                "quarantine": (
                    *(entry for entry in kvnode.spec.quarantine if entry.device not in lifted),
                    *action.quarantine,
                ),
                "operator_epoch": operator_epoch,
            }
        )
        self.kvnodes[action.node] = self.meta(kvnode, spec=spec)

    def _BindSlot(self, action: d.BindSlot, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        _refuse_if(slot.metadata.resource_version != action.resource_version, "slot moved")
        _refuse_if(operator_epoch < slot.spec.operator_epoch, "operatorEpoch may not fall")
        _refuse_if(action.spec.epoch <= slot.spec.epoch, "seats change: the epoch has to grow")
        spec = action.spec.model_copy(update={"operator_epoch": operator_epoch})
        self.slots[action.key] = self.meta(slot, spec=spec)

    def _CancelRemap(self, action: d.CancelRemap, operator_epoch: int, now: Instant) -> None:
        self._set_remap_status(action.key, action.status)

    def _WriteRemapStatus(self, action: d.WriteRemapStatus, operator_epoch: int, now: Instant) -> None:
        self._set_remap_status(action.key, action.status)

    def _set_remap_status(self, key: ObjectKey, status: Any) -> None:
        _refuse_if(key not in self.remaps, f"{key} is gone")
        remap = self.remaps[key]
        _refuse_if(remap.status.phase.is_final, f"{key} is over: its status is final")
        self.remaps[key] = self.meta(remap, status=status)

    def _WriteSlotStatus(self, action: d.WriteSlotStatus, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        self.slots[action.key] = self.meta(slot, status=action.status)

    def _slot(self, key: ObjectKey) -> EngineSlot:
        _refuse_if(key not in self.slots, f"{key} is gone")
        return self.slots[key]


def _refuse_if(refused: bool, why: str) -> None:
    if refused:
        raise ConflictError(why)


@dataclass
class Engine:
    """An engine process. It serves while it has a seat."""

    pod: PodFact
    devices: tuple[str, ...]
    seat: tuple[ObjectKey, int] | None = None


@dataclass
class Host:
    """A host, its agent and its engines: the truth."""

    name: str
    board: str
    rack: str
    devices: dict[str, list[EvidenceView]]
    uuids: dict[str, str]
    engines: list[Engine] = field(default_factory=list)
    alive: bool = True
    agent_up: bool = True
    boot: int = 1
    hello_at: float = START
    granted_at: float | None = None
    plan: NodePlanData | None = None
    plan_revision: int = 0
    applied_revision: int = 0
    seats: dict[tuple[ObjectKey, int], SeatPhase] = field(default_factory=dict)
    highest_operator_epoch: int = 0
    stops: bool = True
    """False: an engine that ignores being told to stop."""

    def serving(self) -> Iterable[tuple[ObjectKey, int]]:
        return [engine.seat for engine in self.engines if self.alive and engine.seat is not None]

    def work(self) -> None:
        """Carry out the newest plan."""
        if not (self.alive and self.agent_up) or self.plan is None:
            return
        wanted = {(seat.slot, seat.epoch): seat for seat in self.plan.seats}
        for engine in self.engines:
            if engine.seat is not None and engine.seat not in wanted:
                if not self.stops:
                    self.seats[engine.seat] = SeatPhase.STOPPING
                    continue
                self.seats[engine.seat] = SeatPhase.RELEASED
                engine.seat = None
        for known, phase in self.seats.items():
            if known not in wanted and phase is SeatPhase.WAITING:
                self.seats[known] = SeatPhase.RELEASED
        for key, seat in wanted.items():
            assert self.seats.get(key) is not SeatPhase.RELEASED, (
                f"{self.name}: {key} was released, and is back"
            )
            if any(engine.seat == key for engine in self.engines):
                continue
            free = [e for e in self.engines if e.seat is None and set(e.devices) == set(seat.devices)]
            self.seats[key] = SeatPhase.ATTACHED if free else SeatPhase.WAITING
            if free:
                free[0].seat = key
        self.applied_revision = self.plan_revision

    def stop_engines(self) -> None:
        """The lease's deadline, or the end of the host: nothing serves until a new plan says so."""
        for engine in self.engines:
            if engine.seat is not None:
                self.seats[engine.seat] = SeatPhase.WAITING
                engine.seat = None
        self.plan = None

    def reboot(self, now: float) -> None:
        self.stop_engines()
        self.alive = self.agent_up = True
        self.boot += 1
        self.hello_at = now
        self.granted_at = None


class Operator:
    """One replica as leader: what it knows, and the memory that dies with it."""

    def __init__(self, world: World, epoch: int) -> None:
        self.world = world
        self.epoch = epoch
        self.since = world.now_seconds
        self.sequence = 1
        self.marks: dict[ObjectKey, dict[StageName, float]] = {}
        self.views: dict[str, AgentView] = {}
        self.revisions: dict[str, tuple[int, NodePlanData]] = {}
        self.cache: dict[str, Mapping[Any, Any]] = {}
        self.todo: list[d.Action] = []
        self.last: d.Plan = d.Plan()
        self.refresh()

    def refresh(self) -> None:
        """Catch up with the API server (list-watch)."""
        api = self.world.api
        self.cache = {
            "groups": dict(api.groups),
            "supernodes": dict(api.supernodes),
            "pools": dict(api.pools),
            "kvnodes": dict(api.kvnodes),
            "slots": dict(api.slots),
            "remaps": dict(api.remaps),
        }

    def hear(self, *nodes: str) -> None:
        """Take in the newest reports of some hosts (all by default); those that cannot be heard go silent."""
        for name in nodes or tuple(self.world.hosts):
            host = self.world.hosts[name]
            if host.alive and host.agent_up:
                self.views[name] = self.world.view_of(host, self.revisions.get(name, (0, None))[0])
            elif name in self.views:
                self.views[name] = replace(self.views[name], connected=False)

    def snapshot(self) -> Snapshot:
        world = self.world
        cached: Any = self.cache
        return Snapshot(
            leadership=Leadership(
                self.epoch, self.since, max(self.since, world.api_back_since), self.sequence
            ),
            mode_cap=world.mode_cap,
            paused=world.paused,
            nodes=world.node_facts(),
            pods=world.pods(),
            agents=dict(self.views),
            acks=world.acks(),
            marks={key: dict(stages) for key, stages in self.marks.items()},
            **cached,
        )

    def think(self) -> d.Plan:
        """Plan from what is known; what was decided waits in `todo`."""
        self.last = self.world.planner(self.snapshot(), self.world.now)
        self.todo = list(self.last.actions)
        for mark in self.last.marks:
            self.marks.setdefault(mark.remap, {}).setdefault(mark.stage, mark.at)
        return self.last

    def act_once(self) -> bool:
        """Carry out the next decision; False when nothing is left. A refusal drops the rest of the plan."""
        if not self.todo:
            return False
        action = self.todo.pop(0)
        try:
            self.world.api.write(action, self.epoch, self.world.now)
        except ConflictError:
            self.todo.clear()
        else:
            if isinstance(action, d.OpenRemap):
                self.sequence = max(self.sequence, sequence_of(action.spec.epoch) + 1)
        self.refresh()
        return bool(self.todo)

    def publish(self) -> None:
        """Write weights to routers and plans to hosts, from what is known now."""
        for weights in self.last.weights:
            self.world.take_weights(weights)
        snapshot = self.snapshot()
        for name, host in self.world.hosts.items():
            plan = node_plan(snapshot, name)
            if plan is None or not (host.alive and host.agent_up):
                continue
            if plan.operator_epoch < host.highest_operator_epoch:
                continue
            revision, known = self.revisions.get(name, (host.plan_revision, None))
            if known != plan:
                revision += 1
            self.revisions[name] = (revision, plan)
            host.plan, host.plan_revision = plan, revision
            host.highest_operator_epoch = plan.operator_epoch


class World:
    """Everything. Time passes only when told."""

    def __init__(self, planner: Planner = failover_plan) -> None:
        self.now_seconds = START
        self.api = Api()
        self.hosts: dict[str, Host] = {}
        self.planner = planner
        self.mode_cap = Mode.ENFORCE
        self.paused = False
        self.api_back_since = 0.0
        self.router: dict[str, int] = {}
        self.router_at = START
        self.router_answers = True
        self.revision = 0
        self._acked: OutputAck | None = None
        self.extra_pods: list[PodFact] = []
        self.unready: set[str] = set()
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

    def with_engine(self, host: str, device: str, *, standby: bool = False, name: str = "") -> World:
        role = "standby" if standby else "decode"
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
        self.hosts[host].engines.append(Engine(pod, (device,)))
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
        role = {
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
                labels={"sn": "a", labels.BOARD: host.board, labels.RACK: host.rack},
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
            leaving_until=None,
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
            fence_level="Process",
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
        self.api.operator_epoch = next_operator_epoch(self.api.operator_epoch, seen)
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
    return next((engine.pod.uid for engine in host.engines if device in engine.devices), "")


def two_racks(planner: Planner = failover_plan) -> World:
    """Four hosts of one device in two racks, one decode engine, a standby on every other host."""
    world = World(planner)
    world.with_host("node-1", board="b1", rack="r1").with_host("node-2", board="b2", rack="r1")
    world.with_host("node-3", board="b3", rack="r2").with_host("node-4", board="b4", rack="r2")
    world.with_engine("node-1", "acc-0")
    for other in ("node-2", "node-3", "node-4"):
        world.with_engine(other, "acc-0", standby=True)
    return world.with_supernode().with_group()
