"""A small cluster that carries out capacity plans: objects change, agents bind, time passes when told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from kvpool.api import KVNode, KVPool, Supernode, TierBudget, labels
from kvpool.api.common import Mode
from kvpool.api.conditions import Condition, ConditionType, find_condition
from kvpool.api.kvnode import UnitPhase, UnitSpec
from kvpool.model.decisions import (
    CreateKeeper,
    CreateKVNode,
    DeleteKeeper,
    DeleteKVNode,
    Plan,
    SetUnits,
    TellRetired,
    WriteStatus,
)
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.observations import AgentView, NodeFact, PodFact, SourceView, StoreView, UnitView
from kvpool.model.snapshot import Leadership, Snapshot, Uninstall
from kvpool.plan.capacity import capacity_plan
from kvpool.plan.keeper_names import generation_kept, is_keeper, keeps
from tests.builders.objects import a_node, an_agent, dram

BEGIN = datetime(2026, 1, 2, 3, 0, 0, tzinfo=UTC)
START_SECONDS = 1000.0


class Cluster:
    """What a Snapshot is taken of. Everything may be changed by tests between plans."""

    def __init__(self) -> None:
        self.now_seconds = START_SECONDS
        self.mode_cap = Mode.ENFORCE
        self.paused = False
        self.uninstall: Uninstall | None = None
        self.leading_since = 0.0
        self.budgets: dict[str, TierBudget] = {}
        self.pools: dict[ObjectKey, KVPool] = {}
        self.supernodes: dict[str, Supernode] = {}
        self.kvnodes: dict[str, KVNode] = {}
        self.nodes: dict[str, NodeFact] = {}
        self.pods: dict[ObjectKey, PodFact] = {}
        self.agents: dict[str, AgentView] = {}
        self.stores: dict[ObjectKey, StoreView] = {}
        self.unreadable: frozenset[tuple[str, ObjectKey]] = frozenset()
        self.plan: Callable[[Snapshot, Instant], Plan] = capacity_plan
        self._versions = 0

    # -- what there is

    def with_nodes(
        self, names: Iterable[str], *sources: SourceView, allocatable: str = "128Gi", **labels_: str
    ) -> Cluster:
        for name in names:
            self.nodes[name] = a_node(name, labels_, allocatable=allocatable)
            media = sources or (dram(0, "64Gi"),)
            self.agents[name] = an_agent(name, *media, at=self.now_seconds)
        return self

    def with_budget(self, budget: TierBudget) -> Cluster:
        self.budgets[budget.metadata.name] = budget
        return self

    def with_pool(self, pool: KVPool) -> Cluster:
        """Add or edit a pool; an edit keeps its status and raises its generation."""
        key = ObjectKey(pool.metadata.namespace, pool.metadata.name)
        before = self.pools.get(key)
        if before is not None:
            metadata = pool.metadata.model_copy(update={"generation": before.metadata.generation + 1})
            pool = pool.model_copy(update={"metadata": metadata, "status": before.status})
        self.pools[key] = pool
        return self

    def with_supernode(self, supernode: Supernode) -> Cluster:
        self.supernodes[supernode.metadata.name] = supernode
        return self

    def with_pod(self, pod: PodFact) -> Cluster:
        self.pods[pod.key] = pod
        return self

    def with_store(self, store: StoreView) -> Cluster:
        self.stores[store.pool] = store
        return self

    # -- time and reports

    @property
    def now(self) -> Instant:
        return Instant(self.now_seconds, BEGIN + timedelta(seconds=self.now_seconds - START_SECONDS))

    def wait(self, seconds: float, *, hearing: bool = True) -> Cluster:
        """Let time pass; agents go on reporting unless told otherwise."""
        self.now_seconds += seconds
        if hearing:
            for name, agent in self.agents.items():
                if agent.connected:
                    lease = replace(agent.lease, granted_at=self.now_seconds)
                    self.agents[name] = replace(agent, reported_at=self.now_seconds, lease=lease)
            for key, store in self.stores.items():
                self.stores[key] = replace(store, asked_at=self.now_seconds)
        return self

    def change_agent(self, node: str, **fields: object) -> Cluster:
        self.agents[node] = replace(self.agents[node], **cast("Any", fields))
        return self

    def change_view(self, node: str, unit: str, **fields: object) -> Cluster:
        """Change what a node's agent says of one unit."""
        agent = self.agents[node]
        assert any(view.name == unit for view in agent.units), f"{node} does not report {unit}"
        views = tuple(
            replace(view, **cast("Any", fields)) if view.name == unit else view for view in agent.units
        )
        self.agents[node] = replace(agent, units=views)
        return self

    def agents_apply(self, *, phase: UnitPhase = UnitPhase.BOUND) -> Cluster:
        """Every connected agent applies its plan; units with a keeper reach `phase`."""
        for name, agent in self.agents.items():
            kvnode = self.kvnodes.get(name)
            if agent.connected and kvnode is not None:
                self.agents[name] = self._applied(agent, kvnode, phase)
        return self

    def _applied(self, agent: AgentView, kvnode: KVNode, phase: UnitPhase) -> AgentView:
        before = {view.name: view for view in agent.units}
        views = tuple(
            self._view(agent.node, unit, before.get(unit.name), phase) for unit in kvnode.spec.units
        )
        sources = tuple(self._with_units(source, agent, views, kvnode) for source in agent.sources)
        # Plans are numbered by their sender: in no way like revisions of the KVNode.
        revision = agent.plan_revision + 1
        released = frozenset(
            (unit.name, unit.generation) for unit in kvnode.spec.units if unit.release != "None"
        )
        return replace(
            agent,
            units=views,
            sources=sources,
            plan_revision=revision,
            applied_revision=revision,
            plan_releases=released,
        )

    def _view(self, node: str, unit: UnitSpec, before: UnitView | None, phase: UnitPhase) -> UnitView:
        if unit.release != "None":
            now = UnitPhase.RELEASED
        elif any(
            keeps(pod, unit, node) and generation_kept(pod) == unit.generation and pod.phase == "Running"
            for pod in self.pods.values()
        ):
            now = phase
        else:
            now = UnitPhase.PENDING
        held = unit.size_bytes if now is UnitPhase.BOUND else 0
        return UnitView(
            name=unit.name,
            generation=unit.generation,
            phase=now,
            size_bytes=unit.size_bytes,
            resident_bytes=held,
            used_bytes=((before.used_bytes if before else 0) or 0) if held else None,
            placement={unit.numa_node: held} if unit.numa_node >= 0 else {},
            placement_verified=unit.numa_node >= 0,
            segment=f"host-{node}:{unit.name}-g{unit.generation}" if held else "",
        )

    def _with_units(
        self, source: SourceView, agent: AgentView, views: tuple[UnitView, ...], kvnode: KVNode
    ) -> SourceView:
        """The medium with what our units took and gave back since the last report."""
        specs = {unit.name: unit for unit in kvnode.spec.units}
        old = sum(v.resident_bytes for v in agent.units if _on(v.name, source))
        new = sum(
            v.resident_bytes
            for v in views
            if specs[v.name].tier == source.tier and specs[v.name].numa_node == source.numa_node
        )
        return replace(source, free_bytes=source.free_bytes + old - new)

    # -- plans

    def snapshot(self) -> Snapshot:
        return Snapshot(
            leadership=Leadership(1, self.leading_since, self.leading_since),
            mode_cap=self.mode_cap,
            paused=self.paused,
            uninstall=self.uninstall,
            budgets=dict(self.budgets),
            pools=dict(self.pools),
            supernodes=dict(self.supernodes),
            kvnodes=dict(self.kvnodes),
            nodes=dict(self.nodes),
            pods=dict(self.pods),
            agents=dict(self.agents),
            stores=dict(self.stores),
            unreadable=self.unreadable,
        )

    def decide(self) -> Plan:
        return self.plan(self.snapshot(), self.now)

    def step(self) -> Plan:
        """Plan once and carry it out."""
        plan = self.decide()
        self.carry_out(plan)
        return plan

    def settle(self, rounds: int = 60) -> Cluster:
        """Plan, carry out and let agents apply until nothing is decided twice in a row."""
        quiet = 0
        for _ in range(rounds):
            plan = self.step()
            self.agents_apply()
            quiet = 0 if plan.actions else quiet + 1
            if quiet == 2:
                return self
        raise AssertionError(f"still deciding after {rounds} rounds: {plan.actions}")

    def carry_out(self, plan: Plan) -> None:
        for action in plan.actions:
            match action:
                case CreateKVNode():
                    self.kvnodes[action.node] = KVNode.parse(
                        {
                            "metadata": {
                                "name": action.node,
                                "uid": f"uid-kvnode-{action.node}",
                                "resourceVersion": self._next_version(),
                            }
                        }
                    )
                case DeleteKVNode():
                    del self.kvnodes[action.node]
                case SetUnits():
                    self._set_units(action)
                case CreateKeeper():
                    self._create_keeper(action)
                case DeleteKeeper():
                    del self.pods[action.pod]
                case WriteStatus():
                    self._write_status(action)
                case TellRetired():
                    self.uninstall = Uninstall(action.namespace, self._next_version(), action.nodes)
                case _:
                    raise AssertionError(f"no business of capacity: {action}")

    def _set_units(self, action: SetUnits) -> None:
        kvnode = self.kvnodes[action.node]
        assert action.resource_version == kvnode.metadata.resource_version, "decided on an old version"
        metadata = kvnode.metadata.model_copy(update={"resource_version": self._next_version()})
        spec = kvnode.spec.model_copy(update={"units": action.units, "revision": kvnode.spec.revision + 1})
        self.kvnodes[action.node] = kvnode.model_copy(update={"metadata": metadata, "spec": spec})

    def _create_keeper(self, action: CreateKeeper) -> None:
        keeper = action.keeper
        key = ObjectKey("kvpool-system", keeper.name)
        assert key not in self.pods, f"{key} exists"
        self.pods[key] = PodFact(
            key=key,
            uid=f"uid-{keeper.name}",
            labels={
                labels.MANAGED_BY: labels.MANAGER,
                labels.COMPONENT: "keeper",
                labels.NODE: keeper.node,
                labels.GENERATION: str(keeper.unit.generation),
            },
            node=keeper.node,
            address=self.nodes[keeper.node].address,
            phase="Running",
            ready=True,
            deleting=False,
            memory_request_bytes=keeper.memory_bytes,
        )

    def _write_status(self, action: WriteStatus) -> None:
        if action.kind == "KVPool":
            self.pools[action.key] = self.pools[action.key].model_copy(update={"status": action.status})
        elif action.kind == "TierBudget":
            budget = self.budgets[action.key.name]
            self.budgets[action.key.name] = budget.model_copy(update={"status": action.status})
        else:
            kvnode = self.kvnodes[action.key.name]
            metadata = kvnode.metadata.model_copy(update={"resource_version": self._next_version()})
            self.kvnodes[action.key.name] = kvnode.model_copy(
                update={"status": action.status, "metadata": metadata}
            )

    def _next_version(self) -> str:
        self._versions += 1
        return str(self._versions)

    # -- what people see

    def pool(self, name: str = "chat", namespace: str = "inference") -> KVPool:
        return self.pools[ObjectKey(namespace, name)]

    def units(self, pool: str = "chat", namespace: str = "inference") -> dict[tuple[str, str], UnitSpec]:
        """The pool's decided units by node and name."""
        return {
            (name, unit.name): unit
            for name, kvnode in sorted(self.kvnodes.items())
            for unit in kvnode.spec.units
            if unit.pool == f"{namespace}/{pool}"
        }

    def bytes_on(self, node: str, pool: str = "chat") -> int:
        return sum(unit.size_bytes for (at, _), unit in self.units(pool).items() if at == node)

    def keepers(self) -> dict[str, PodFact]:
        return {key.name: pod for key, pod in self.pods.items() if is_keeper(pod)}

    def pool_condition(self, kind: ConditionType, name: str = "chat") -> Condition | None:
        return find_condition(self.pool(name).status.conditions, kind)

    def budget_condition(self, kind: ConditionType, name: str = "gpu") -> Condition | None:
        return find_condition(self.budgets[name].status.conditions, kind)

    def figures(self, tier: str = "DRAM", name: str = "chat") -> dict[str, str]:
        found = next(entry for entry in self.pool(name).status.tiers if entry.name == tier)
        return {
            word: getattr(found, word)
            for word in ("declared", "admitted", "bound", "used", "foreign", "unknown")
        }


def _on(unit: str, source: SourceView) -> bool:
    *_, tier, numa = unit.split(".")
    return tier == source.tier.lower() and numa == f"n{source.numa_node}"


def a_cluster() -> Cluster:
    return Cluster()


def nodes(count: int) -> list[str]:
    return [f"node-{number}" for number in range(1, count + 1)]
