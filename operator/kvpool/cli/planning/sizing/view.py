"""Shows what the planner said of every option."""

from collections.abc import Sequence

from kvpool.cli.planning.sizing.amounts import (
    NONE,
    bytes_text,
    count_text,
    factor_text,
    money_text,
    time_text,
)
from kvpool.cli.planning.sizing.asking import Instance, OptionAnswer, TierAnswer
from kvpool.cli.planning.sizing.document import size_document
from kvpool.cli.planning.sizing.options import SizingFile
from kvpool.cli.planning.sizing.spares import SpareAnswer, spares_table
from kvpool.cli.planning.sizing.verdicts import findings_of, limit_text, limit_words, pooling_text
from kvpool.cli.screen import Column, Lines, Screen, Section, Table
from kvpool.plan.tiers.planner import TierFigures

_OPTION_COLUMNS = (
    Column("OPTION"),
    Column("SESSIONS", right=True),
    Column("LIMITED BY"),
    Column("GAIN", right=True),
    Column("PRICE", right=True),
    Column("WATTS", right=True),
    Column("PRICE EACH", right=True),
    Column("WATTS EACH", right=True),
    Column("CHEAPER BY", right=True),
)
_TIER_COLUMNS = (
    Column("TIER"),
    Column("ROOM", right=True),
    Column("SESSIONS", right=True),
    Column("ALONE", right=True),
    Column("LATE", right=True),
    Column("PRICE/GB", right=True),
    Column("PAYS UP TO", right=True),
    Column("LOADING WINS"),
)
_SWAY_COLUMNS = (
    Column("CONSTANT"),
    Column("HALF", right=True),
    Column("LIMITED BY"),
    Column("TWICE", right=True),
    Column("LIMITED BY"),
    Column("PRICE EACH", right=True),
)


def size_screen(
    file: SizingFile, instance: Instance, answers: Sequence[OptionAnswer], spares: SpareAnswer | None
) -> Screen:
    """Return the screen of `kvpool size`."""
    sections: list[Section] = [Lines("Instance", _instance_lines(file, instance)), _options(file, answers)]
    for answer in answers:
        sections.append(_tiers(file, answer))
        sections.append(_sways(answer))
    if file.domain is not None and spares is not None:
        sections.append(spares_table(file.domain, spares))
    return Screen(sections, size_document(file, instance, answers, spares), findings_of(instance, answers))


def _instance_lines(file: SizingFile, instance: Instance) -> list[str]:
    serving, sessions = file.serving, file.sessions
    name = f"{instance.model} on {serving.cards} x {serving.accelerator}, {serving.quantisation}"
    session, left = bytes_text(instance.session_bytes), bytes_text(instance.kv_memory_bytes)
    every = time_text(sessions.returns * 1e9)
    lines = [
        f"{name}: {instance.kv_bytes_per_token:,} bytes of KV a token, all ranks together",
        f"a session of {sessions.context:,} tokens has {session}; the accelerators keep {left} for KV",
        f"each session returns every {every} with {sessions.new_tokens:,} new tokens",
    ]
    constants = instance.constants
    if constants is None:
        lines.append("the model is not known, so times are those of the links alone")
    else:
        error = "" if constants.worst_error is None else f", worst error {constants.worst_error:.1%}"
        lines.append(f"timing constants: {constants.provenance}, {constants.source}{error}")
    return lines


def _options(file: SizingFile, answers: Sequence[OptionAnswer]) -> Table:
    unit = f"; prices in {file.currency}" if file.currency else ""
    note = f"GAIN and CHEAPER BY are against the accelerators' own memory alone; EACH is per session{unit}"
    return Table("Options", _OPTION_COLUMNS, [_option_row(answer) for answer in answers], note)


def _option_row(answer: OptionAnswer) -> tuple[str, ...]:
    plan, cost = answer.plan, answer.cost
    return (
        answer.name,
        count_text(plan.sessions),
        limit_words(plan.binding),
        factor_text(plan.gain),
        money_text(cost.price),
        money_text(cost.watts),
        money_text(cost.price_per_session),
        money_text(cost.watts_per_session),
        factor_text(cost.saving),
    )


def _tiers(file: SizingFile, answer: OptionAnswer) -> Table:
    plan = answer.plan
    lower = {tier.name: tier for tier in answer.tiers}
    computed = plan.recompute_ns is not None
    rows = [_tier_row(tier, lower.get(tier.name), computed=computed) for tier in plan.tiers]
    busy = ", ".join(f"{name} {load:.0%}" for name, load in plan.link_loads.items()) or "none"
    rate, instances = f"{plan.returns_per_second:.3g}", f"{plan.prefill_load:.2g}"
    note = [
        f"{limit_text(answer)}.",
        f"Links busy with returns: {busy}.",
        f"All returns are {rate} a second; their prompts keep {instances} such instances busy.",
    ]
    if computed:
        note.append(f"A session that was not kept: {time_text(plan.recompute_ns)} to the first token.")
    if answer.pooling is not None:
        note.append(pooling_text(answer.pooling))
    title = f"{answer.name}: time to first token by the tier that a session was in"
    late = f"P{file.sessions.quantile * 100:.4g}"
    columns = [Column(late, right=True) if column.name == "LATE" else column for column in _TIER_COLUMNS]
    return Table(title, tuple(columns), rows, "\n".join(note))


def _tier_row(tier: TierFigures, lower: TierAnswer | None, *, computed: bool) -> tuple[str, ...]:
    wins = NONE
    if lower is not None and computed:
        tokens = lower.load_wins_from_tokens
        wins = "never" if tokens is None else "always" if tokens == 1 else f"from {tokens:,} tokens"
    return (
        tier.name,
        count_text(tier.room),
        count_text(tier.sessions),
        time_text(tier.ttft_alone_ns),
        time_text(tier.ttft_quantile_ns),
        NONE if lower is None else money_text(lower.price_per_gb),
        NONE if lower is None else money_text(lower.break_even_price_per_gb),
        wins,
    )


def _sways(answer: OptionAnswer) -> Table:
    rows = []
    for sway in answer.sensitivity:
        low, high = sway.plans
        same = low.sessions == high.sessions == answer.plan.sessions
        each = " to ".join(money_text(cost.price_per_session) for cost in sway.costs)
        rows.append(
            (
                sway.constant,
                "same" if same else count_text(low.sessions),
                "" if same else limit_words(low.binding),
                "same" if same else count_text(high.sessions),
                "" if same else limit_words(high.binding),
                each,
            )
        )
    return Table(f"{answer.name}: if a constant were half, or twice", _SWAY_COLUMNS, rows)
