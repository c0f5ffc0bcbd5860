"""A budget's whole status: what its nodes hold of what it allows."""

from collections.abc import Sequence

from kvpool.api.common import Mode
from kvpool.api.conditions import ConditionType, Verdict, find_condition, merge_conditions
from kvpool.api.tierbudget import BudgetNodes, BudgetTier, TierBudget, TierBudgetStatus, TierFigures
from kvpool.plan.figures import UnitReading, total_used
from kvpool.plan.freshness import observer_suspect
from kvpool.plan.modes import Standing, capacity_standing_of
from kvpool.plan.pool_figures import broken_order, tier_figures
from kvpool.plan.scene import Scene
from kvpool.plan.sizes import bytes_or_none, listed, short_size
from kvpool.plan.unit_findings import not_applied, numa_skew, placement_drift


def budget_status(scene: Scene, budget: TierBudget) -> tuple[TierBudgetStatus, tuple[float, ...]]:
    """Return a budget's status, and when it changes by time alone (monotonic seconds)."""
    name = budget.metadata.name
    tiers = tuple(_tier(scene, name, tier) for tier in budget.spec.tiers)
    readings = [
        reading
        for tier in budget.spec.tiers
        for reading in scene.readings.on_nodes(scene.rulings.nodes_ruled(name, tier.name), tier.name)
    ]
    lag, look = not_applied(
        [r for r in readings if r.unit.release == "None"], budget.status.conditions, scene.now
    )
    suspect = observer_suspect(scene.snapshot.agents, scene.now)
    standing = capacity_standing_of(f"budget {name}", budget.metadata, budget.spec.mode, scene.snapshot)
    found = [
        _ready(scene, budget, tiers),
        _withheld(standing),
        _watermark(budget, readings),
        lag,
        numa_skew(readings),
        placement_drift(readings),
        Verdict(ConditionType.OBSERVER_SUSPECT, True, suspect.code, suspect.message) if suspect else None,
        Verdict(ConditionType.PAUSED, True, standing.hold.code, standing.hold.message)
        if standing.paused and standing.hold
        else None,
    ]
    status = TierBudgetStatus(
        observed_generation=budget.metadata.generation,
        nodes=_nodes(scene, name),
        tiers=tiers,
        conditions=merge_conditions(
            budget.status.conditions,
            [verdict for verdict in found if verdict is not None],
            budget.metadata.generation,
            scene.now.text(),
        ),
    )
    return status, () if look is None else (look,)


def _tier(scene: Scene, name: str, tier: BudgetTier) -> TierFigures:
    nodes = scene.rulings.nodes_ruled(name, tier.name)
    agents = [scene.grounds[node].agent for node in nodes]
    return tier_figures(
        tier.name,
        (bytes_or_none(tier.per_node) or 0) * len(nodes),
        scene.readings.on_nodes(nodes, tier.name),
        scene.readings.foreign_on(nodes) if tier.name == "DRAM" else (),
        [agent.reported_at for agent in agents if agent is not None],
        scene.now,
    )


def _nodes(scene: Scene, name: str) -> BudgetNodes:
    grounds = [scene.grounds[node] for node in scene.rulings.matched.get(name, ())]
    return BudgetNodes(
        matched=len(grounds),
        ready=sum(bool(ground.fact and ground.fact.ready and ground.agent) for ground in grounds),
        stale=sum(ground.agent is None for ground in grounds),
    )


def _ready(scene: Scene, budget: TierBudget, tiers: Sequence[TierFigures]) -> Verdict:
    kind, name = ConditionType.READY, budget.metadata.name
    for tier in budget.spec.tiers:
        unsound = scene.rulings.unsound.get((name, tier.name))
        if unsound is not None:
            return Verdict(kind, False, unsound.code, unsound.message)
    conflict = _conflict(scene, budget)
    if conflict is not None:
        return Verdict(kind, False, "Overruled", conflict)
    broken = broken_order(tiers)
    if broken is not None:
        return Verdict(kind, False, "FiguresDisagree", broken)
    nodes = _nodes(scene, name)
    if nodes.matched == 0:
        return Verdict(kind, False, "NoNodes", "nodeSelector matches no node")
    if nodes.ready < nodes.matched:
        silent = [node for node in scene.rulings.matched[name] if scene.grounds[node].blocked is not None]
        text = f"{nodes.ready} of {nodes.matched} nodes are ready: not {listed(silent)}"
        return Verdict(kind, False, "NodesNotReady", text)
    return Verdict(kind, True, "Ready", f"{nodes.ready} nodes are ready")


def _conflict(scene: Scene, budget: TierBudget) -> str | None:
    """Say where another budget, first by name, rules the same tier of the same nodes."""
    parts = [
        f"budget {winner} rules {tier.name} on {listed(nodes)}"
        for tier in budget.spec.tiers
        for winner, nodes in sorted(
            scene.rulings.overruled.get((budget.metadata.name, tier.name), {}).items()
        )
    ]
    if not parts:
        return None
    return f"{'; '.join(parts)}: of several budgets the first by name rules; make the selectors disjoint"


def _withheld(standing: Standing) -> Verdict:
    kind = ConditionType.ACTION_WITHHELD
    if standing.hold is not None and standing.asked is not Mode.OBSERVE:
        return Verdict(kind, True, standing.hold.code, standing.hold.message)
    if standing.asked is Mode.OBSERVE:
        return Verdict(kind, False, "ModeObserve", "the budget allows no action: mode Observe looks only")
    return Verdict(kind, False, "NothingWithheld", "everything decided is done")


def _watermark(budget: TierBudget, readings: Sequence[UnitReading]) -> Verdict | None:
    """Set above a tier's high watermark, kept until every tier is below its low one."""
    was = find_condition(budget.status.conditions, ConditionType.ABOVE_HIGH_WATERMARK)
    held = was is not None and was.status == "True"
    above = []
    for tier in budget.spec.tiers:
        mine = [reading for reading in readings if reading.unit.tier == tier.name]
        bound, used = sum(reading.bound_bytes for reading in mine), total_used(mine)[0]
        percent = tier.low_watermark if held else tier.high_watermark
        if bound and used * 100 > bound * percent:
            word = "low" if held else "high"
            above.append(
                f"{tier.name}: {short_size(used)} of {short_size(bound)} in use, "
                f"above the {word} watermark of {percent} percent"
            )
    if not above:
        return None
    return Verdict(ConditionType.ABOVE_HIGH_WATERMARK, True, "AboveWatermark", "; ".join(above))
