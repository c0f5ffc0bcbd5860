"""Turns an options file into stacks and a demand, and asks the planner."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kvpool.cli.faults import CliError
from kvpool.cli.planning.sizing.measured import Measured
from kvpool.cli.planning.sizing.options import HardwareOption, Serving, SizedLink, SizedTier, SizingFile
from kvpool.plan.tiers.breakeven import load_wins_from_tokens
from kvpool.plan.tiers.cost import Cost, break_even_price_per_gb, cost_of
from kvpool.plan.tiers.planner import TierPlan, plan_tiers
from kvpool.plan.tiers.pooling import PoolingVerdict, pooling_verdict
from kvpool.plan.tiers.sensitivity import Sway, sensitivity
from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from kvpool.plan.timing.cards import CARDS, LINKS
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.engine_config import shape_of_config
from kvpool.plan.timing.kv_memory import kv_memory_bytes
from kvpool.plan.timing.model import LinkModel
from kvpool.plan.timing.provenance import Constants
from kvpool.plan.timing.quantisation import QUANTISATIONS
from kvpool.plan.timing.shapes import SHAPES, ModelShape, Ranks

FAST: Final = "HBM"

Reader = Callable[[str], object]
"""Reads a document by the path that the options file gives."""


@dataclass(frozen=True, slots=True)
class Instance:
    """The instance that serves the sessions, as the planner sees it."""

    model: str
    kv_bytes_per_token: int
    """Held by all ranks together, copies counted."""
    session_bytes: int
    weight_bytes: int | None
    """None: the model is not known but for its KV."""
    kv_memory_bytes: int
    """Accelerator memory that is left for KV."""
    missing_bytes: int
    """Accelerator memory that the weights need beyond what there is; 0: they fit."""
    constants: Constants | None

    @property
    def runs_a_session(self) -> bool:
        """Whether one session, which is computed in the accelerators' own memory, fits there."""
        return self.session_bytes <= self.kv_memory_bytes


@dataclass(frozen=True, slots=True)
class TierAnswer:
    """What is said of one lower tier."""

    name: str
    break_even_price_per_gb: float | None
    price_per_gb: float
    load_wins_from_tokens: int | None
    """Fewest cached tokens for which loading from here is faster than computing; None: never, or unknown."""


@dataclass(frozen=True, slots=True)
class OptionAnswer:
    """What is said of one option."""

    name: str
    instance: Instance
    plan: TierPlan
    cost: Cost
    power_cap: float | None
    tiers: tuple[TierAnswer, ...]
    pooling: PoolingVerdict | None
    sensitivity: tuple[Sway, ...]


def instance_of(file: SizingFile, read: Reader, measured: Measured) -> Instance:
    """Return the instance of an options file.

    Raises:
        CliError: when the model's config does not describe a model.
    """
    serving, sessions = file.serving, file.sessions
    card = CARDS[serving.accelerator]
    number_format = QUANTISATIONS[serving.quantisation].with_kv(serving.kv_bits)
    ranks = Ranks(serving.cards // serving.kv_parallel, serving.kv_parallel)
    if file.model.kv_bytes_per_token is not None:
        kappa = file.model.kv_bytes_per_token
        room = _kv_memory_bytes(serving, 0)
        return Instance(
            "unnamed model", kappa, kappa * sessions.context, None, max(0, room), max(0, -room), None
        )
    shape = _shape(file, read)
    held = ranks.held_bytes_per_token(shape, serving.kv_bits)
    parked = ranks.session_bytes(shape, sessions.context, serving.kv_bits)
    weights = number_format.weight_bytes(shape.parameters)
    constants = measured.timing() or constants_for(shape, card, ranks, number_format)
    room = _kv_memory_bytes(serving, weights)
    return Instance(shape.name, held, parked, weights, max(0, room), max(0, -room), constants)


def _kv_memory_bytes(serving: Serving, weight_bytes: int) -> int:
    return kv_memory_bytes(
        CARDS[serving.accelerator], serving.cards, weight_bytes, serving.memory_use, serving.activations
    )


def _shape(file: SizingFile, read: Reader) -> ModelShape:
    if file.model.preset is not None:
        return SHAPES[file.model.preset]
    path = file.model.config or ""
    raw: Any = read(path)
    if not isinstance(raw, Mapping):
        raise CliError(f"{path} is no model's config.json: it holds no named fields")
    try:
        shape = shape_of_config(raw, path)
    except ValueError as error:
        raise CliError(str(error)) from None
    total = file.model.parameters
    if total is None:
        return shape
    active = round(shape.active_parameters / shape.parameters * total)
    return replace(shape, parameters=total, active_parameters=active)


def ask(file: SizingFile, instance: Instance, measured: Measured) -> tuple[OptionAnswer, ...]:
    """Plan every option of a file.

    Raises:
        CliError: naming the option, when its tiers and links do not fit together.
    """
    return tuple(_option(file, instance, measured, option) for option in file.options)


def _option(file: SizingFile, instance: Instance, measured: Measured, option: HardwareOption) -> OptionAnswer:
    try:
        demand = _demand(file, instance)
        stack = _stack(file, instance, measured, option)
        _check_shares(file, stack)
    except ValueError as error:
        raise CliError(f"option {option.name!r}: {error}") from None
    plan = plan_tiers(stack, demand)
    verdict = None
    if option.in_rack_rate is not None:
        verdict = pooling_verdict(plan.returns_per_second, instance.session_bytes, option.in_rack_rate)
    return OptionAnswer(
        name=option.name,
        instance=instance,
        plan=plan,
        cost=cost_of(stack, plan),
        power_cap=option.power_cap,
        tiers=tuple(_tier_answer(stack, demand, plan, tier, instance) for tier in option.tiers),
        pooling=verdict,
        sensitivity=sensitivity(stack, demand),
    )


def _demand(file: SizingFile, instance: Instance) -> Demand:
    sessions = file.sessions
    return Demand(
        session_bytes=instance.session_bytes,
        return_seconds=sessions.returns,
        context_tokens=sessions.context,
        new_tokens=sessions.new_tokens,
        new_bytes=(sessions.new_tokens + sessions.answer_tokens) * instance.kv_bytes_per_token,
        timing=None if instance.constants is None else instance.constants.timing,
        ttft_target_ns=None if sessions.ttft is None else round(sessions.ttft * 1e9),
        quantile=sessions.quantile,
        utilisation=file.utilisation,
        return_shares=sessions.return_shares,
    )


def _stack(file: SizingFile, instance: Instance, measured: Measured, option: HardwareOption) -> Stack:
    serving = file.serving
    watts = CARDS[serving.accelerator].watts if serving.watts is None else serving.watts
    fast = Tier(
        FAST,
        instance.kv_memory_bytes,
        price=serving.cards * serving.price + option.other_price,
        watts=serving.cards * watts + option.other_watts,
    )
    lower = tuple(_tier(tier) for tier in option.tiers)
    if not instance.runs_a_session:
        # What no accelerator can bring up and go on with is not kept for anybody.
        lower = tuple(replace(tier, capacity_bytes=0) for tier in lower)
    return Stack((fast, *lower), tuple(_link(link, measured) for link in option.links), option.exclusive)


def _tier(tier: SizedTier) -> Tier:
    whole = tier.modules * tier.size
    budget = None if tier.drive_writes_per_day is None else round(tier.drive_writes_per_day * whole)
    return Tier(
        tier.name,
        whole - tier.reserve,
        tier.path,
        price=tier.modules * tier.price,
        watts=tier.modules * tier.watts,
        write_bytes_per_day=budget,
        borrowed=tier.borrowed,
    )


def _link(link: SizedLink, measured: Measured) -> Link:
    if link.measured is not None:
        base = measured.link(link.measured)
    else:
        base = LINKS[link.preset] if link.preset is not None else LinkModel(0, link.rate or 1)
    setup = base.setup_ns if link.setup_microseconds is None else link.setup_microseconds * 1_000
    return Link(link.name, base.bytes_per_second * link.count, setup)


def _check_shares(file: SizingFile, stack: Stack) -> None:
    names = [tier.name for tier in stack.tiers]
    for name in file.sessions.return_shares or {}:
        if name not in names:
            raise ValueError(f"sessions.returnShares names tier {name!r}, known are {', '.join(names)}")


def _tier_answer(
    stack: Stack, demand: Demand, plan: TierPlan, tier: SizedTier, instance: Instance
) -> TierAnswer:
    by_name = {link.name: link for link in stack.links}
    links = [by_name[name] for name in tier.path]
    wins = None
    if demand.timing is not None and links:
        way = LinkModel(sum(link.setup_ns for link in links), min(link.bytes_per_second for link in links))
        wins = load_wins_from_tokens(demand.timing, instance.kv_bytes_per_token, way)
    return TierAnswer(
        tier.name,
        break_even_price_per_gb(stack, demand, plan, tier.name),
        tier.price / (tier.size / 1e9),
        wins,
    )
