"""Everything capacity decisions look at, prepared once for one step."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvpool.model.decisions import Reason
from kvpool.model.instant import Instant
from kvpool.model.observations import PodFact
from kvpool.model.snapshot import Snapshot
from kvpool.plan.budgets import Rulings, rule
from kvpool.plan.demand import Demand, demands
from kvpool.plan.figures import Readings, read
from kvpool.plan.grounds import Ground, survey
from kvpool.plan.keeper_names import is_keeper, keeper_node
from kvpool.plan.modes import cluster_hold


@dataclass(frozen=True, slots=True)
class Scene:
    """A snapshot seen as capacity: nodes, who rules them, what pools ask, what was reported."""

    snapshot: Snapshot
    now: Instant
    grounds: Mapping[str, Ground]
    rulings: Rulings
    readings: Readings
    demands: tuple[Demand, ...]
    keepers: Mapping[str, tuple[PodFact, ...]]
    """Node to the keeper pods that are for it, in name order."""
    cluster_hold: Reason | None
    """Why nothing at all is done in the cluster; None when objects may act."""


def set_scene(snapshot: Snapshot, now: Instant) -> Scene:
    """Prepare a snapshot for capacity decisions."""
    grounds = survey(snapshot, now)
    return Scene(
        snapshot,
        now,
        grounds,
        rule(snapshot),
        read(snapshot, grounds, now),
        demands(snapshot, grounds),
        _keepers_by_node(snapshot),
        cluster_hold(snapshot),
    )


def _keepers_by_node(snapshot: Snapshot) -> dict[str, tuple[PodFact, ...]]:
    found: dict[str, list[PodFact]] = {}
    for _, pod in sorted(snapshot.pods.items()):
        if is_keeper(pod):
            found.setdefault(keeper_node(pod), []).append(pod)
    return {node: tuple(pods) for node, pods in found.items()}
