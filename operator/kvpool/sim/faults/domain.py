"""A failure domain of instances and spares under the operator's own failover core.

Each instance is a slot of one group. Hosts report, the core plans (`kvpool.plan.failover`), its decisions
change the objects, hosts carry out their plans and routers take the weights: the same rounds as in a
cluster, on the virtual clock. Between faults nothing is due and no rounds are done.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from kvpool.api import KVNode, KVPool, PDGroup, Supernode, labels
from kvpool.api.common import Mode
from kvpool.api.remap import StageName
from kvpool.model.decisions import OpenRemap, Plan, Reason
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.nodeplan import NodePlanData
from kvpool.model.observations import AgentView, NodeFact, OutputAck, PeerWord, PodFact
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.plan.failover import failover_plan
from kvpool.plan.liveness import HostFinding, HostState, host_findings
from kvpool.plan.node_plan import node_plans
from kvpool.rules.epochs import sequence_of
from kvpool.sim.faults.machine import Machine
from kvpool.sim.faults.objects import Objects

NAMESPACE: Final = "simulation"
GROUP: Final = ObjectKey(NAMESPACE, "fleet")
OUTPUT: Final = "router"
EPOCH: Final = 1
BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
WARM_UP_SECONDS: Final = 120.0
"""Before the run begins: slots are bound, and weights work their way up."""
MOST_WARM_UP_SECONDS: Final = 3600.0
FULL_WEIGHT: Final = 100


@dataclass(frozen=True, slots=True)
class Held:
    """What the core said of one object in the last round."""

    code: str
    is_told: bool


class Domain:
    """Instances, spares, and who leads them. Time passes only when told."""

    def __init__(self, instances: int, spares: int, load_seconds: float, round_seconds: float = 0.5) -> None:
        self.round_seconds = round_seconds
        self.now_seconds = 1000.0
        self.objects = Objects(EPOCH)
        self.machines = [
            self._machine(number, instances, load_seconds) for number in range(instances + spares)
        ]
        self._add_objects(instances)
        self._views: dict[str, AgentView] = {}
        self._revisions: dict[str, tuple[int, NodePlanData]] = {}
        self._marks: dict[ObjectKey, dict[StageName, float]] = {}
        self._sequence = 1
        self._router: dict[str, int] = {}
        self._router_at = self.now_seconds
        self._ack: OutputAck | None = None
        self.log: list[tuple[float, str]] = []
        """What the core announced, or says of why it holds still: seconds of its clock, and words."""
        self._held: dict[str, Held] = {}
        self._weight_reasons: dict[str, Reason] = {}
        while not self.is_settled or self.now_seconds < 1000.0 + WARM_UP_SECONDS:
            if self.now_seconds > 1000.0 + MOST_WARM_UP_SECONDS:
                raise ValueError(
                    f"{instances} instances were not bound within {MOST_WARM_UP_SECONDS:.0f} s: engineStart "
                    f"is {load_seconds:g} s, and has to be less"
                )
            self.round(self.now_seconds + 1.0)
        self.start_seconds = self.now_seconds
        self.log.clear()

    # -- what is asked of it

    @property
    def slots(self) -> list[ObjectKey]:
        """The slots in the order of their instances."""
        return sorted(self.objects.slots, key=lambda key: (len(key.name), key.name))

    def weights(self) -> list[int]:
        """Of each instance, as routers have them: 0 to 100."""
        return [self._router.get(key.name, 0) for key in self.slots]

    def weight_reasons(self) -> list[str]:
        """Of each instance, why the core gives it the weight that it has; empty: it has said nothing."""
        found = [self._weight_reasons.get(key.name) for key in self.slots]
        return [f"{reason.code}, {reason.message}" if reason is not None else "" for reason in found]

    def hosts(self) -> list[str]:
        """Which host serves each instance at this moment; empty: nobody."""
        serving = {machine.serves: machine.name for machine in self.machines if machine.serves is not None}
        return [serving.get(key, "") for key in self.slots]

    @property
    def is_settled(self) -> bool:
        """Whether every instance is served at full weight and no move is open."""
        return (
            bool(self.objects.slots)
            and all(self.hosts())
            and all(weight == FULL_WEIGHT for weight in self.weights())
            and all(remap.status.phase.is_final for remap in self.objects.remaps.values())
        )

    def host_of(self, instance: int) -> Machine | None:
        """The machine that serves an instance now."""
        name = self.hosts()[instance]
        return next((machine for machine in self.machines if machine.name == name), None)

    # -- what happens

    def round(self, now_seconds: float) -> None:
        """One round of everything: hosts work, the core plans, objects and weights change."""
        self.now_seconds = now_seconds
        for machine in self.machines:
            machine.work(now_seconds)
        self._hear()
        snapshot = self._snapshot()
        plan = failover_plan(snapshot, self._now)
        for mark in plan.marks:
            self._marks.setdefault(mark.remap, {}).setdefault(mark.stage, mark.at)
        for event in plan.events:
            self.log.append((now_seconds, f"{event.key.name}: {event.reason.message}"))
        for action in plan.actions:
            self.objects.write(action, self._now)
            if isinstance(action, OpenRemap):
                self._sequence = max(self._sequence, sequence_of(action.spec.epoch) + 1)
        for weights in plan.weights:
            self._weight_reasons.update({member.slot.name: member.reason for member in weights.members})
            self._take({member.slot.name: member.weight for member in weights.members})
        self._say_why(plan, host_findings(snapshot, self._now))
        self._publish()

    def rest_until(self, now_seconds: float) -> None:
        """Let time pass in which nothing happens: agents went on reporting."""
        self.now_seconds = now_seconds
        for machine in self.machines:
            if machine.alive:
                machine.granted_at = now_seconds
        self._router_at = min(self._router_at, now_seconds)
        self._take(dict(self._router))
        self._hear()

    # -- inside

    def _say_why(self, plan: Plan, hosts: Mapping[str, HostFinding]) -> None:
        """Log each reason of the core that has stood for a whole round, once for as long as it stands."""
        reasons = {
            node: finding.reason for node, finding in hosts.items() if finding.state is not HostState.ALIVE
        }
        reasons |= {what.rpartition("/")[2]: reason for what, reason in plan.explanations}
        announced = {event.reason.message for event in plan.events}
        held: dict[str, Held] = {}
        for what, reason in reasons.items():
            before = self._held.get(what)
            told = reason.message in announced
            stands = before is not None and before.code == reason.code
            if before is not None and stands:
                told |= before.is_told
            if stands and not told:
                self.log.append((self.now_seconds, f"{what}: {reason.code}, {reason.message}"))
            held[what] = Held(reason.code, told or stands)
        self._held = held

    @property
    def _now(self) -> Instant:
        return Instant(self.now_seconds, BEGIN + timedelta(seconds=self.now_seconds))

    def _hear(self) -> None:
        for machine in self.machines:
            if machine.alive:
                peers = tuple(
                    PeerWord(other.name, other.alive, self.now_seconds, None)
                    for other in self.machines
                    if other is not machine
                )
                revision = self._revisions.get(machine.name, (0, None))[0]
                self._views[machine.name] = machine.view(self.now_seconds, revision, EPOCH, peers)
            elif machine.name in self._views:
                self._views[machine.name] = replace(self._views[machine.name], connected=False)

    def _take(self, members: dict[str, int]) -> None:
        if members != self._router:
            self._router, self._router_at = members, self.now_seconds
        self._ack = OutputAck(GROUP, OUTPUT, 1, True, self.now_seconds, self._router_at, dict(members))

    def _publish(self) -> None:
        plans = node_plans(self._snapshot())
        for machine in self.machines:
            plan = plans.get(machine.name)
            if plan is None or not machine.alive:
                continue
            revision, known = self._revisions.get(machine.name, (machine.plan_revision, None))
            revision += known != plan
            self._revisions[machine.name] = (revision, plan)
            machine.plan, machine.plan_revision = plan, revision

    def _snapshot(self) -> Snapshot:
        stored = self.objects
        return Snapshot(
            leadership=Leadership(EPOCH, 0.0, 0.0, self._sequence),
            mode_cap=Mode.ENFORCE,
            paused=False,
            uninstall=None,
            groups=dict(stored.groups),
            supernodes=dict(stored.supernodes),
            pools=dict(stored.pools),
            kvnodes=dict(stored.kvnodes),
            slots=dict(stored.slots),
            remaps=dict(stored.remaps),
            nodes={machine.name: self._node(machine) for machine in self.machines},
            pods={machine.pod.key: machine.pod for machine in self.machines},
            agents=dict(self._views),
            acks=(self._ack,) if self._ack is not None else (),
            marks={key: dict(stages) for key, stages in self._marks.items()},
        )

    def _node(self, machine: Machine) -> NodeFact:
        number = machine.name.rpartition("-")[2]
        return NodeFact(
            name=machine.name,
            uid=f"uid-{machine.name}",
            labels={"domain": "simulation", labels.BOARD: f"board-{number}", labels.RACK: "rack-0"},
            ready=True,
            ready_since=0.0,
            address="10.0.0.1",
            allocatable_memory_bytes=1 << 40,
        )

    def _machine(self, number: int, instances: int, load_seconds: float) -> Machine:
        role = "decode" if number < instances else "standby"
        name = f"host-{number}"
        pod = PodFact(
            key=ObjectKey(NAMESPACE, f"{role}-{name}"),
            uid=f"uid-{role}-{name}",
            labels={"app": role},
            node=name,
            address="10.0.0.1",
            phase="Running",
            ready=True,
            deleting=False,
            memory_request_bytes=0,
        )
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
        self.objects.kvnodes[name] = KVNode.parse(
            {"metadata": metadata, "status": {"bootID": f"{name}-boot-1"}}
        )
        return Machine(name, pod, number >= instances, load_seconds, self.now_seconds, self.now_seconds)

    def _add_objects(self, instances: int) -> None:
        stored = self.objects
        stored.supernodes["simulation"] = Supernode.parse(
            {
                "metadata": {"name": "simulation", "uid": "uid-simulation", "generation": 1},
                "spec": {"mode": "Enforce", "nodeSelector": {"matchLabels": {"domain": "simulation"}}},
            }
        )
        stored.pools[GROUP] = KVPool.parse(
            {
                "metadata": {"name": GROUP.name, "namespace": NAMESPACE},
                "spec": {"store": {"none": {}}},
            }
        )
        decode = {
            "instances": instances,
            "podSelector": {"matchLabels": {"app": "decode"}},
            "attach": "Standby",
            "standby": {"podSelector": {"matchLabels": {"app": "standby"}}},
        }
        output = {"name": OUTPUT, "type": "HTTPRoute", "httpRoute": {"parentRef": {"name": "gateway"}}}
        stored.groups[GROUP] = PDGroup.parse(
            {
                "metadata": {
                    "name": GROUP.name,
                    "namespace": NAMESPACE,
                    "uid": "uid-fleet",
                    "generation": 1,
                },
                "spec": {
                    "mode": "Enforce",
                    "poolRef": {"name": GROUP.name},
                    "supernodeRef": {"name": "simulation"},
                    "decode": decode,
                    "routing": {"outputs": [output]},
                },
            }
        )
