"""How the answers of `kvpool ratio` look."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from kvpool.cli.planning.ratios.file import PrefillDecode
from kvpool.cli.screen import Column, Lines, Section, Table
from kvpool.plan.calibration.sensitivity import Swing
from kvpool.plan.ratio.attention_ffn import AttentionExpertPlan
from kvpool.plan.ratio.rates import Impossible
from kvpool.plan.ratio.table import Cell
from kvpool.plan.timing.provenance import Constants


def cells_section(cells: Sequence[Cell]) -> Table:
    """One row for each kind of request."""
    columns = (
        *(Column(name, right=True) for name in ("PROMPT", "ANSWER", "CACHED", "P/D", "EQUAL AT", "REQ/S")),
        *(Column(name, right=True) for name in ("EACH P", "EACH D", "BATCH")),
        Column("LIMITED BY"),
    )
    return Table("Prefill to decode", columns, [tuple(_cells(cell)) for cell in cells])


def _cells(cell: Cell) -> Iterator[str]:
    yield f"{cell.shape.prompt_tokens:,}"
    yield f"{cell.shape.output_tokens:,}"
    yield f"{cell.shape.hit_tokens:,}"
    if isinstance(cell.answer, Impossible):
        yield from ("none", "-", "-", "-", "-", "-")
        yield cell.answer.limit.value
        return
    rates = cell.answer.rates
    yield str(cell.answer.split)
    yield f"{rates.decode / rates.prefill:.2f}"
    yield f"{cell.answer.carried:.2f}"
    yield f"{rates.prefill:.2f}"
    yield f"{rates.decode:.2f}"
    yield f"{rates.batch}"
    yield cell.answer.limited_by.value


def impossible_of(cells: Sequence[Cell]) -> list[str]:
    """One line for each kind of request that no split serves as promised."""
    return [
        f"prompt {cell.shape.prompt_tokens:,} ({cell.shape.hit_tokens:,} cached), answer "
        f"{cell.shape.output_tokens:,}: {cell.answer.text}"
        for cell in cells
        if isinstance(cell.answer, Impossible)
    ]


def origins_section(question: PrefillDecode, prefill: Constants, decode: Constants) -> Lines:
    """Where the constants are from."""
    promised = f"{question.ttft:g} s to the first token, {1000 * question.tpot:g} ms for each further one"
    roles = (("prefill", question.prefill, prefill), ("decode", question.decode, decode))
    return Lines(
        "",
        [
            f"{question.model}; promised {promised}",
            *(
                f"{name}: {role.cards} {role.accelerator} an instance; {known.provenance}, {known.source}"
                for name, role, known in roles
            ),
        ],
    )


def swings_section(swings: Sequence[Swing]) -> Section:
    """What each constant does to the first row's requests a second."""
    return Table(
        "If a constant were half, or twice (requests a second of the first row's split)",
        (
            Column("CONSTANT"),
            Column("HALF", right=True),
            Column("AS IT IS", right=True),
            Column("TWICE", right=True),
        ),
        [
            (swing.name, f"{swing.halved:.2f}", f"{swing.as_it_is:.2f}", f"{swing.doubled:.2f}")
            for swing in swings
        ],
    )


def attention_section(plan: AttentionExpertPlan, most: int) -> Lines:
    """The ratio of attention to experts, and what a layer takes."""
    layer = plan.layer
    attention, experts, transfer, period = (
        f"{spent_ns / 1000:.1f}"
        for spent_ns in (layer.attention_ns, layer.expert_ns, layer.exchange_ns, layer.period_ns)
    )
    return Lines(
        "Attention to experts",
        [
            f"{plan.ratio} attention instances to 1 for experts (closed form: {plan.closed_form:.1f})"
            + (f"; more than {most} were not tried (mostRatio)" if plan.ratio == most else ""),
            f"{plan.tokens_per_second:,.0f} tokens a second for each instance",
            f"a layer takes {period} us: attention {attention}, experts {experts}, each transfer {transfer}",
        ],
    )


def cell_document(cell: Cell) -> dict[str, JsonValue]:
    """One kind of request, for programs."""
    asked: dict[str, JsonValue] = {
        "promptTokens": cell.shape.prompt_tokens,
        "outputTokens": cell.shape.output_tokens,
        "hitTokens": cell.shape.hit_tokens,
    }
    if isinstance(cell.answer, Impossible):
        return {**asked, "limitedBy": cell.answer.limit.value, "message": cell.answer.text}
    rates = cell.answer.rates
    return {
        **asked,
        "recommended": str(cell.answer.split),
        "prefill": cell.answer.split.prefill,
        "decode": cell.answer.split.decode,
        "requestsPerSecond": cell.answer.carried,
        "prefillRequestsPerSecond": rates.prefill,
        "decodeRequestsPerSecond": rates.decode,
        "decodeBatch": rates.batch,
        "decodeLimitedBy": rates.decode_limit.value,
        "stepNs": rates.step_ns,
        "ttftNs": rates.ttft_ns,
        "limitedBy": cell.answer.limited_by.value,
        "message": cell.answer.text,
    }


def swing_document(swing: Swing) -> dict[str, JsonValue]:
    """What one constant does, for programs."""
    return {
        "constant": swing.name,
        "halved": swing.halved,
        "asItIs": swing.as_it_is,
        "doubled": swing.doubled,
    }


def attention_document(plan: AttentionExpertPlan) -> dict[str, JsonValue]:
    """The same of attention and experts, for programs."""
    layer = plan.layer
    return {
        "ratio": plan.ratio,
        "closedForm": plan.closed_form,
        "tokensPerSecondOfAnInstance": plan.tokens_per_second,
        "attentionNs": layer.attention_ns,
        "expertNs": layer.expert_ns,
        "exchangeNs": layer.exchange_ns,
        "periodNs": layer.period_ns,
        "deadZone": layer.dead_zone,
    }
