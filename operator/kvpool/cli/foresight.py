"""The operator's own planning steps, run on a Snapshot of what a live cluster's objects say."""

from dataclasses import dataclass, replace
from typing import Final

from kvpool.api.common import Mode
from kvpool.cli.cluster_state import ClusterState
from kvpool.cli.workloads import Selectors
from kvpool.model.decisions import Plan
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.plan.capacity import capacity_plan
from kvpool.plan.failover import failover_plan
from kvpool.rules.epochs import operator_epochs_in
from kvpool.world.build import Objects, build_snapshot
from kvpool.world.from_status import with_observations

_LEADING_SECONDS: Final = 3600.0
"""The leader is taken to lead for long: what it has heard by now stands in the statuses."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """A Snapshot and what the operator would decide on it."""

    snapshot: Snapshot
    capacity: Plan
    failover: Plan


def foresee(objects: Objects, state: ClusterState, selectors: Selectors, now: Instant) -> Foresight:
    """Run both planning steps; an unknown mode cap is taken as Enforce."""
    return foresee_in(live_snapshot(objects, state, selectors, now), now)


def foresee_in(snapshot: Snapshot, now: Instant) -> Foresight:
    """Run both planning steps on a Snapshot."""
    return Foresight(snapshot, capacity_plan(snapshot, now), failover_plan(snapshot, now))


def live_snapshot(objects: Objects, state: ClusterState, selectors: Selectors, now: Instant) -> Snapshot:
    """Put what was read into a Snapshot, with observations as the statuses tell them."""
    operator = state.operator
    since = now.monotonic_seconds - _LEADING_SECONDS
    bare = build_snapshot(
        objects,
        Leadership(operator_epoch=0, since=since, api_back_since=since),
        mode_cap=operator.mode_cap if operator.mode_cap is not None else Mode.ENFORCE,
        paused=operator.pause.paused,
    )
    known = [operator.lease.epoch if operator.lease is not None else 0, *operator_epochs_in(bare)]
    leadership = Leadership(operator_epoch=max(known), since=since, api_back_since=since)
    known_all = replace(
        bare, leadership=leadership, workload_selectors=selectors, uninstall=operator.uninstall
    )
    return with_observations(known_all, now)
