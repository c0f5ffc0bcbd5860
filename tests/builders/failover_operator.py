"""A model operator for failover tests: what it knows, what it decided, and the memory that dies with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kvpool.api.remap import StageName
from kvpool.model import decisions as d
from kvpool.model.ids import ObjectKey
from kvpool.model.nodeplan import NodePlanData
from kvpool.model.observations import AgentView
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.plan.node_plan import node_plans
from kvpool.rules.epochs import sequence_of
from tests.builders.failover_api import ConflictError

if TYPE_CHECKING:
    from tests.builders.failover import World


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
        cached: Any = dict(self.cache)
        cached["supernodes"] = {
            name: item for name, item in cached["supernodes"].items() if name not in world.unread
        }
        return Snapshot(
            leadership=Leadership(
                self.epoch, self.since, max(self.since, world.api_back_since), self.sequence
            ),
            mode_cap=world.mode_cap,
            paused=world.paused,
            uninstall=world.uninstall,
            nodes=world.node_facts(),
            pods=world.pods(),
            agents=dict(self.views),
            acks=world.acks(),
            workload_selectors=dict(world.selectors),
            unreadable=frozenset(("Supernode", ObjectKey("", name)) for name in world.unread),
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
        plans = node_plans(self.snapshot())
        for name, host in self.world.hosts.items():
            plan = plans.get(name)
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
