"""Which pools get what: physical capacity first, oldest pool first, all of a pool or nothing new of it.

Units that are decided stay as they are unless their own pool asks for another size: a pool that does not fit
keeps what it has, and never takes from another.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kvpool.api.kvpool import StopPolicy
from kvpool.model.decisions import Reason
from kvpool.model.ids import ObjectKey
from kvpool.plan.budgets import Rulings
from kvpool.plan.demand import Demand, TierDemand
from kvpool.plan.figures import Readings, total_used
from kvpool.plan.freshness import hearing_until, observer_suspect
from kvpool.plan.keeper_names import keeper_bytes
from kvpool.plan.offers import Layout, Offers, collect_offers, lay_out, shrink
from kvpool.plan.room import Room
from kvpool.plan.scene import Scene
from kvpool.plan.shortfall import refusals_text, shortfall_text
from kvpool.plan.sizes import listed, short_size
from kvpool.plan.store_address import store_unknown


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer to one pool."""

    key: ObjectKey
    verdict: bool | None
    """Whether all that the pool asks for has a place; None while that cannot be told."""
    reason: Reason
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    """Tier to where its bytes are to be; tiers that stay as they are, are absent."""
    budget_hold: Reason | None = None
    """Why budgets of nodes that the pool selects do not act; None when they do."""
    decided_again_at: float | None = None
    """When the answer may change by time alone (monotonic seconds)."""


@dataclass(frozen=True, slots=True)
class _TierAnswer:
    """One tier's answer: a refusal, or a layout (None: nothing changes)."""

    refused: Reason | None = None
    undecided: bool = False
    layout: Layout | None = None
    offers: Offers | None = None
    again_at: float | None = None


def admit(demand: Demand, scene: Scene, room: Room, *, acting: bool) -> Admission:
    """Answer one pool, and take what it gets from `room`.

    With `acting`, only nodes whose budget may act are asked; without, what would be if all could.
    """
    if demand.refused is not None:
        return Admission(demand.key, verdict=False, reason=demand.refused)
    trial = room.copy()
    answers: dict[str, _TierAnswer] = {}
    for tier in demand.tiers:
        answer = _answer_tier(demand, tier, scene, trial, acting=acting)
        answers[tier.tier] = answer
        if answer.refused is not None:
            hold = _budget_hold(demand, tier, scene.rulings)
            verdict = None if answer.undecided else False
            return Admission(
                demand.key, verdict, answer.refused, budget_hold=hold, decided_again_at=answer.again_at
            )
        if answer.layout is not None:
            _take(trial, tier, answer.layout)
    room.become(trial)
    layouts = {name: answer.layout for name, answer in answers.items() if answer.layout is not None}
    return Admission(demand.key, verdict=True, reason=_granted(demand, answers), layouts=layouts)


def _answer_tier(demand: Demand, tier: TierDemand, scene: Scene, room: Room, *, acting: bool) -> _TierAnswer:
    if tier.wanted_bytes == tier.held_bytes:
        return _TierAnswer()
    if tier.wanted_bytes < tier.held_bytes:
        return _answer_shrink(demand, tier, scene.readings)
    if demand.pool.spec.stop_policy is StopPolicy.HOLD:
        return _TierAnswer(
            Reason(
                "StopPolicyHold",
                f"{short_size(tier.declared_bytes)} of {tier.tier} asked, {short_size(tier.held_bytes)} "
                "admitted: stopPolicy Hold admits nothing new",
            )
        )
    unknown = store_unknown(scene, demand)
    if unknown is not None:
        return _TierAnswer(unknown, undecided=True)
    waiting = _growth_hold(demand, tier, scene)
    if waiting is not None:
        return waiting
    offers = collect_offers(demand, tier, scene.grounds, scene.rulings, room, acting=acting)
    layout = lay_out(tier, offers)
    if layout is None:
        return _TierAnswer(Reason("NotEnoughRoom", _refused_text(tier, offers)))
    return _TierAnswer(layout=layout, offers=offers)


def _answer_shrink(demand: Demand, tier: TierDemand, readings: Readings) -> _TierAnswer:
    if demand.pool.spec.stop_policy is StopPolicy.HOLD:
        mine = [r for r in readings.of_pool(demand.key) if r.unit.tier == tier.tier]
        used, silent = total_used(mine)
        silent += sum(reading.stale for reading in mine)
        figures = f"{short_size(tier.declared_bytes)} of {tier.tier} asked, {short_size(used)} in use"
        advice = "stopPolicy Hold shrinks nothing that is in use"
        if silent:
            text = f"{figures} and {silent} units whose use is unknown: {advice}"
            return _TierAnswer(Reason("UseUnknown", text))
        if used > tier.wanted_bytes:
            text = f"{figures}: {advice}; ask for {short_size(used)} or more"
            return _TierAnswer(Reason("ShrinkBelowUse", text))
    return _TierAnswer(layout=shrink(tier))


def _growth_hold(demand: Demand, tier: TierDemand, scene: Scene) -> _TierAnswer | None:
    """Wait where laying out now would crowd the few nodes that happen to be known."""
    suspect = observer_suspect(scene.snapshot.agents, scene.now)
    if suspect is not None:
        return _TierAnswer(Reason("ObserverSuspect", suspect.message), undecided=True)
    nodes = [
        name
        for name in sorted(demand.nodes)
        if scene.rulings.of(name, tier.tier) is not None and scene.snapshot.nodes[name].ready
    ]
    missing = [name for name in nodes if name not in scene.snapshot.kvnodes]
    if missing:
        return _TierAnswer(
            Reason("WaitingForNodes", f"KVNodes are being created: {listed(missing)}"), undecided=True
        )
    until = hearing_until(scene.snapshot, nodes, scene.now)
    if until is None:
        return None
    unheard = [name for name in nodes if name not in scene.snapshot.agents]
    text = f"waiting for the agents of {listed(unheard)} to report to this leader"
    return _TierAnswer(Reason("WaitingForAgents", text), undecided=True, again_at=until)


def _refused_text(tier: TierDemand, offers: Offers) -> str:
    kept = f"; {short_size(tier.held_bytes)} stay as they are" if tier.held_bytes else "; nothing is bound"
    return shortfall_text(tier, offers) + kept


def _budget_hold(demand: Demand, tier: TierDemand, rulings: Rulings) -> Reason | None:
    for name in sorted(demand.nodes):
        ruling = rulings.of(name, tier.tier)
        if ruling is not None and ruling.standing.hold is not None:
            return ruling.standing.hold
    return None


def _take(room: Room, tier: TierDemand, layout: Layout) -> None:
    """Hold what grows; what shrinks is free only once its keeper gave it back."""
    held = {(holding.node, holding.unit.numa_node): holding.unit.size_bytes for holding in tier.held}
    for site, size in layout.items():
        before = held.get((site.node, site.numa_node), 0)
        if size <= before:
            continue
        memory = keeper_bytes(site.backend, size) - (keeper_bytes(site.backend, before) if before else 0)
        room.take(site.node, tier.tier, site.source, size - before, memory, new=not before)


def _granted(demand: Demand, answers: Mapping[str, _TierAnswer]) -> Reason:
    if not demand.tiers:
        return Reason("NothingAsked", "no tiers are asked for")
    parts = []
    refused: dict[str, Reason] = {}
    for tier in demand.tiers:
        offers = answers[tier.tier].offers
        parts.append(f"{short_size(tier.wanted_bytes)} of {tier.tier}")
        refused |= offers.refusals if offers is not None else {}
    outside = {
        holding.node for tier in demand.tiers for holding in tier.held if holding.node not in demand.nodes
    }
    text = ", ".join(parts)
    if refused:
        text += f"; not on {refusals_text(refused)}"
    if outside:
        text += f"; units stay on nodes that the pool no longer selects: {listed(outside)}"
    return Reason("Admitted", text)
