"""Makes fleets from scenarios: sizes and times from presets, rules by name."""

from collections.abc import Callable
from dataclasses import replace

from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.placement.policies import rule_named
from kvpool.plan.routing.catalogue import PREFILL_ROUTERS, ROUTERS
from kvpool.plan.routing.guards import Guarded
from kvpool.plan.routing.prediction import LengthPredictor
from kvpool.plan.routing.router import Router, RouterFactory
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.cards import CARDS, LINKS
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.kv_memory import kv_memory_bytes
from kvpool.plan.timing.model import NS_PER_SECOND, LinkModel, TimingModel
from kvpool.plan.timing.quantisation import QUANTISATIONS
from kvpool.plan.timing.shapes import SHAPES, Ranks
from kvpool.sim.faults.domain import Domain
from kvpool.sim.faults.schedule import Fault, FaultSchedule
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.report.figures import Calibration
from kvpool.sim.scenario import Constants, LinkSpec, ModelOnCards, Routing, Scenario
from kvpool.sim.serving.design import InstanceSpec, MixedDesign, SplitDesign, TierSpec
from kvpool.sim.serving.fleet import Fleet
from kvpool.sim.serving.lengths import ExactLengths, LearntLengths, Lengths, NoisyLengths
from kvpool.sim.serving.mixed import MixedFleet
from kvpool.sim.serving.split import SplitFleet
from kvpool.sim.serving.views import Belief
from kvpool.sim.streams import Stream

NS_PER_MS = 1e6


class PlanError(ValueError):
    """A scenario that cannot be, though its fields make sense; the text says which limit, and by how much."""


def bytes_per_token(model: ModelOnCards) -> int:
    """KV of one token in one instance."""
    if model.kv_bytes_per_token is not None:
        return model.kv_bytes_per_token
    assert model.preset is not None, "the scenario was checked"
    return Ranks(model.cards).held_bytes_per_token(SHAPES[model.preset], model.kv_bits)


def timing_of(model: ModelOnCards) -> tuple[TimingModel, Calibration]:
    """Return the constants of an instance of speed 1, and where they are from."""
    if model.constants is not None:
        return _given(model.constants), Calibration("all", "Given", "the scenario")
    assert model.preset is not None, "the scenario was checked"
    number_format = QUANTISATIONS[model.quantisation].with_kv(model.kv_bits)
    found = constants_for(SHAPES[model.preset], CARDS[model.accelerator], Ranks(model.cards), number_format)
    return found.timing, Calibration("all", found.provenance.value, found.source, found.worst_error)


def kv_bytes(model: ModelOnCards) -> int:
    """Return what weights and activations leave for KV in one instance.

    Raises:
        PlanError: when the weights do not fit.
    """
    card = CARDS[model.accelerator]
    weights = 0
    if model.preset is not None:
        weights = QUANTISATIONS[model.quantisation].weight_bytes(SHAPES[model.preset].parameters)
    room = kv_memory_bytes(card, model.cards, weights, model.memory_use, model.activations)
    if weights and room <= 0:
        raise PlanError(
            f"{model.preset} at {model.quantisation} has {weights} bytes of weights, and {model.cards} x "
            f"{model.accelerator} leave {weights + room}: {-room} bytes too few; take more cards"
        )
    return room


def link_of(spec: LinkSpec) -> LinkModel:
    """Return a link's figures."""
    if spec.preset is not None:
        return LINKS[spec.preset]
    assert spec.rate is not None, "the scenario was checked"
    return LinkModel(spec.setup_microseconds * 1000, spec.rate)


def objectives_of(scenario: Scenario) -> dict[str, Objective]:
    """Return the promises by class of service."""
    return {
        name: Objective(
            round(promise.ttft * NS_PER_SECOND), round(promise.tpot * NS_PER_SECOND), promise.weight
        )
        for name, promise in scenario.promises.items()
    }


def router_of(routing: Routing, draws: Stream, factory: RouterFactory | None = None) -> Router:
    """Make the rule for one run; `factory` takes the place of the named one."""
    rule = (factory or ROUTERS[routing.rule])(draws.split("rule"))
    return Guarded(rule, draws.split("guards")) if routing.guarded else rule


def fleet_of(
    scenario: Scenario,
    block_tokens: int,
    seed: int,
    factory: RouterFactory | None = None,
    eviction: Callable[[], EvictionRule] | None = None,
) -> Fleet:
    """Make the fleet for one run.

    Raises:
        PlanError: when something does not fit.
    """
    draws = Stream(seed)
    router = router_of(scenario.routing, draws.split("routing"), factory)
    lengths = _lengths(scenario.routing, draws.split("lengths"))
    interval_ns = round(scenario.routing.report_interval * NS_PER_SECOND)
    fleet, size = scenario.fleet, bytes_per_token(scenario.model)
    tiers = tuple(
        TierSpec(Tier[tier.tier], tier.size // size, link_of(tier.link), tier.shared) for tier in fleet.tiers
    )

    def make_rule() -> EvictionRule:
        return rule_named(fleet.eviction) if eviction is None else eviction()

    make_eviction = None if eviction is None and fleet.eviction == "Recency" else make_rule
    if fleet.instances is not None:
        mixed = MixedDesign(
            _specs(scenario, fleet.instances, 0, block_tokens),
            size,
            objectives_of(scenario),
            fleet.chunk_tokens,
            interval_ns,
            tiers,
            make_eviction,
        )
        return MixedFleet(mixed, router, lengths)
    prefill, decode = fleet.prefill or 0, fleet.decode or 0
    split = SplitDesign(
        _specs(scenario, prefill, 0, block_tokens),
        _specs(scenario, decode, prefill, block_tokens),
        size,
        objectives_of(scenario),
        fleet.hand_off,
        fleet.first_token,
        interval_ns,
        tiers,
        make_eviction,
    )
    return SplitFleet(split, router, PREFILL_ROUTERS[scenario.routing.prefill_rule](), lengths)


def faults_of(scenario: Scenario) -> FaultSchedule | None:
    """Return what fails, over a domain of the instances that serve; None: nothing does."""
    if not scenario.failures:
        return None
    serving = scenario.fleet.instances or scenario.fleet.decode or 0
    faults = [
        Fault(
            round(failure.at * NS_PER_SECOND),
            failure.instance,
            failure.what,
            None if failure.repaired_after is None else round(failure.repaired_after * NS_PER_SECOND),
        )
        for failure in scenario.failures
    ]
    return FaultSchedule(Domain(serving, scenario.spares, scenario.engine_start), faults)


def _specs(scenario: Scenario, count: int, start: int, block_tokens: int) -> tuple[InstanceSpec, ...]:
    fleet, model = scenario.fleet, scenario.model
    timing, _ = timing_of(model)
    capacity = room_tokens(scenario, block_tokens)
    link = link_of(fleet.link)
    specs = []
    for place in range(start, start + count):
        speed = fleet.speeds[place % len(fleet.speeds)]
        belief = None if fleet.speeds_are_known else Belief(timing, link, capacity)
        specs.append(InstanceSpec(at_speed(timing, speed), capacity, link, fleet.most_running, belief))
    return tuple(specs)


def room_tokens(scenario: Scenario, block_tokens: int) -> int:
    """Return the tokens whose KV one instance holds.

    Raises:
        PlanError: when that is not one prefix block, or less than is asked for.
    """
    size = bytes_per_token(scenario.model)
    room = _kv_memory(scenario) // size
    if room < block_tokens:
        raise PlanError(
            f"an instance has room for {room} tokens of {size} bytes, and one prefix block has "
            f"{block_tokens}; give kvMemory, or more cards"
        )
    return room


def _kv_memory(scenario: Scenario) -> int:
    wanted, model = scenario.fleet.kv_memory, scenario.model
    if model.preset is None and wanted is not None:
        return wanted
    room = kv_bytes(model)
    if wanted is not None and wanted > room:
        raise PlanError(
            f"kvMemory is {wanted} bytes, and weights and activations leave {room}: {wanted - room} too few"
        )
    return wanted or room


def at_speed(timing: TimingModel, speed: float) -> TimingModel:
    """Return the constants of an instance that is `speed` times as fast in all it does."""
    return replace(
        timing,
        prefill_base_ns=timing.prefill_base_ns / speed,
        prefill_token_ns=timing.prefill_token_ns / speed,
        prefill_square_ns=timing.prefill_square_ns / speed,
        step_base_ns=timing.step_base_ns / speed,
        step_sequence_ns=timing.step_sequence_ns / speed,
        step_token_ns=timing.step_token_ns / speed,
    )


def _given(constants: Constants) -> TimingModel:
    return TimingModel(
        constants.prefill_base * NS_PER_MS,
        constants.prefill_token * NS_PER_MS,
        constants.prefill_square * NS_PER_MS,
        constants.step_base * NS_PER_MS,
        constants.step_sequence * NS_PER_MS,
        constants.step_token * NS_PER_MS,
    )


def _lengths(routing: Routing, draws: Stream) -> Lengths:
    if routing.learnt_lengths:
        return LearntLengths(LengthPredictor())
    if routing.length_error:
        return NoisyLengths(draws, routing.length_error)
    return ExactLengths()
