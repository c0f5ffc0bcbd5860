"""Turns the file of `kvpool ratio` into the planner's questions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kvpool.cli.faults import CliError
from kvpool.cli.planning.ratios.file import AttentionExperts, PrefillDecode
from kvpool.cli.planning.sizing.options import Serving
from kvpool.plan.calibration.models import PREFILL_CONSTANTS, STEP_CONSTANTS
from kvpool.plan.calibration.sensitivity import Swing, sensitivity
from kvpool.plan.ratio.attention_ffn import (
    AttentionExpertPlan,
    Batch,
    Stages,
    plan_attention_experts,
    sent_share,
)
from kvpool.plan.ratio.demand import Promise
from kvpool.plan.ratio.rates import Impossible, Roles, rates
from kvpool.plan.ratio.recommendation import Asked, Recommended
from kvpool.plan.ratio.split import Bounds
from kvpool.plan.ratio.table import Cell, ratio_table
from kvpool.plan.timing.cards import CARDS, LINKS
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.kv_memory import kv_memory_bytes
from kvpool.plan.timing.model import NS_PER_SECOND, LinkModel
from kvpool.plan.timing.provenance import Constants
from kvpool.plan.timing.quantisation import QUANTISATIONS
from kvpool.plan.timing.shapes import SHAPES, ModelShape, Ranks

LINK_RATE = "link bytes_per_second"


def constants_of(question: PrefillDecode, serving: Serving) -> Constants:
    """The timing constants of one role, with their origin."""
    formats = QUANTISATIONS[serving.quantisation].with_kv(serving.kv_bits)
    return constants_for(SHAPES[question.model], CARDS[serving.accelerator], _ranks(serving), formats)


def roles_of(question: PrefillDecode) -> Roles:
    """One instance of each role.

    Raises:
        CliError: when the weights do not fit into an instance of either role.
    """
    decode, shape = question.decode, SHAPES[question.model]
    kv_bytes = _ranks(decode).held_bytes_per_token(shape, decode.kv_bits)
    prefill_room = _kv_memory_bytes(shape, question.prefill, "prefill")
    prefill_kv_bytes = _ranks(question.prefill).held_bytes_per_token(shape, question.prefill.kv_bits)
    room = _kv_memory_bytes(shape, decode, "decode")
    return Roles(
        prefill=constants_of(question, question.prefill).timing,
        decode=constants_of(question, decode).timing,
        link=LINKS[question.link],
        kv_bytes_per_token=kv_bytes,
        decode_capacity_tokens=room // kv_bytes,
        prefill_cards=question.prefill.cards,
        decode_cards=decode.cards,
        staged_sequences=question.staged_sequences,
        prefill_capacity_tokens=prefill_room // prefill_kv_bytes,
    )


def _kv_memory_bytes(shape: ModelShape, serving: Serving, role: str) -> int:
    """What the weights leave for KV. Raises CliError when they do not fit."""
    weights = QUANTISATIONS[serving.quantisation].weight_bytes(shape.parameters)
    room = kv_memory_bytes(
        CARDS[serving.accelerator], serving.cards, weights, serving.memory_use, serving.activations
    )
    if room < 0:
        there_is = f"{max(0, weights + room) / 1e9:,.1f} GB for weights of {weights / 1e9:,.1f} GB"
        raise CliError(
            f"prefillDecode.{role}: {serving.cards} {serving.accelerator} have {there_is}; "
            f"{-room / 1e9:,.1f} GB are missing: give it more cards"
        )
    return room


def table_of(question: PrefillDecode, roles: Roles) -> Sequence[Cell]:
    """The ratio for every kind of request that is asked about."""
    load = question.requests_per_second
    asked = Asked(
        shapes=(),
        promise=Promise(round(question.ttft * NS_PER_SECOND), round(question.tpot * NS_PER_SECOND)),
        objective=question.objective,
        cards=question.cards,
        requests_per_1000_seconds=None if load is None else max(1, round(1000 * load)),
        bounds=Bounds(question.bounds.min, question.bounds.max),
    )
    return tuple(ratio_table(roles, asked, question.prompts, question.outputs, question.hit_percents))


def swings_of(cell: Cell, roles: Roles, promise: Promise) -> Sequence[Swing]:
    """What each constant does to the requests that a split carries; none where no split will do."""
    answer = cell.answer
    if not isinstance(answer, Recommended):
        return ()
    constants = {
        **{f"prefill {name}": float(getattr(roles.prefill, name)) for name in PREFILL_CONSTANTS},
        **{f"decode {name}": float(getattr(roles.decode, name)) for name in STEP_CONSTANTS},
        LINK_RATE: float(roles.link.bytes_per_second),
    }

    def carried(changed: Mapping[str, float]) -> float:
        found = rates(_changed(roles, changed), (cell.shape,), promise)
        return 0.0 if isinstance(found, Impossible) else answer.split.rate(found.prefill, found.decode)

    return sensitivity(carried, constants)


def attention_plan(question: AttentionExperts) -> AttentionExpertPlan:
    """The best ratio of attention to expert instances.

    Raises:
        CliError: when the experts cannot be spread as asked.
    """
    attention, experts, exchange = question.attention, question.experts, question.exchange
    try:
        share = sent_share(experts.experts, experts.nodes, experts.chosen)
    except ValueError as error:
        raise CliError(f"attentionExperts.experts: {error}") from None
    stages = Stages(
        1_000 * attention.base_microseconds,
        1_000 * attention.sequence_microseconds,
        1_000 * attention.token_microseconds,
        1_000 * experts.base_microseconds,
        1_000 * experts.token_microseconds,
        1_000 * exchange.setup_microseconds,
        exchange.rate,
        exchange.bytes_per_token,
        share,
    )
    batch = Batch(
        question.sequences, question.sequences * question.context, question.micro_batches, question.layers
    )
    return plan_attention_experts(stages, batch, question.most_ratio)


def _ranks(serving: Serving) -> Ranks:
    return Ranks(serving.cards // serving.kv_parallel, serving.kv_parallel)


def _changed(roles: Roles, constants: Mapping[str, float]) -> Roles:
    prefill = {name: constants[f"prefill {name}"] for name in PREFILL_CONSTANTS}
    decode = {name: constants[f"decode {name}"] for name in STEP_CONSTANTS}
    return replace(
        roles,
        prefill=replace(roles.prefill, **prefill),
        decode=replace(roles.decode, **decode),
        link=LinkModel(roles.link.setup_ns, max(1, round(constants[LINK_RATE]))),
    )
