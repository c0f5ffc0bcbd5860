"""Sentences about options: which limit binds and by how much, and what a person should look at."""

from collections.abc import Sequence

from kvpool.cli.planning.sizing.amounts import bytes_text, count_text, factor_text, money_text, time_text
from kvpool.cli.planning.sizing.asking import Instance, OptionAnswer
from kvpool.plan.tiers.limits import Limit, LimitedBy
from kvpool.plan.tiers.pooling import Buys, PoolingVerdict


def limit_words(limit: Limit) -> str:
    """`Bandwidth of ssd`."""
    if limit.kind is LimitedBy.CAPACITY:
        return "Capacity"
    return f"{limit.kind} of {limit.where}"


def limit_text(answer: OptionAnswer) -> str:
    """Which limit binds, and how far the next one is, or by how much nobody can be served."""
    plan, limit = answer.plan, answer.plan.binding
    if not answer.instance.runs_a_session:
        return f"Nobody can be served: {_no_room(answer.instance)}"
    if not plan.sessions:
        return f"Nobody can be served: {_shortfall(limit)}"
    further = plan.next_limit
    text = f"{limit_words(limit)} binds at {count_text(plan.sessions)} sessions"
    if further is None or further.sessions is None:
        return f"{text}; nothing else would"
    return (
        f"{text}; next would be {limit_words(further)} at {count_text(further.sessions)}"
        f" ({factor_text(further.sessions / plan.sessions)})"
    )


def _no_room(instance: Instance) -> str:
    if instance.missing_bytes:
        return f"the accelerators lack {bytes_text(instance.missing_bytes)} for the weights alone"
    needs, left = bytes_text(instance.session_bytes), bytes_text(instance.kv_memory_bytes)
    return f"one session runs in {needs} of the accelerators' own memory, and {left} are left for KV"


def _shortfall(limit: Limit) -> str:
    needs, there_is = _amount(limit.kind, limit.one_needs), _amount(limit.kind, limit.there_is)
    ratio = f", {factor_text(limit.one_needs / limit.there_is)} of it" if limit.there_is else ""
    match limit.kind:
        case LimitedBy.CAPACITY:
            return f"one session needs {needs}, all tiers together have {there_is}{ratio}"
        case LimitedBy.LATENCY:
            return f"from {limit.where} the first token takes {needs} at best, {there_is} are allowed{ratio}"
        case LimitedBy.BANDWIDTH:
            return f"one session needs {needs} of {limit.where}, returns may use {there_is}{ratio}"
        case LimitedBy.ENDURANCE:
            return f"one session writes {needs} to {limit.where}, its warranty allows {there_is}{ratio}"


def _amount(kind: LimitedBy, amount: int) -> str:
    match kind:
        case LimitedBy.LATENCY:
            return time_text(amount)
        case LimitedBy.BANDWIDTH:
            return f"{bytes_text(amount)}/s"
        case LimitedBy.ENDURANCE:
            return f"{bytes_text(amount)} a day"
        case LimitedBy.CAPACITY:
            return bytes_text(amount)


def pooling_text(verdict: PoolingVerdict) -> str:
    """What memory outside the rack buys, with the two rates."""
    need, inside = bytes_text(verdict.needed_bytes_per_second), bytes_text(verdict.inside_bytes_per_second)
    rates = f"returns load {need}/s, the rack carries {inside}/s inside"
    if verdict.buys is Buys.CAPACITY:
        return f"Memory out of the rack buys capacity: {rates}."
    return f"Memory out of the rack buys latency: {rates}, {factor_text(verdict.load)} of it are needed."


def findings_of(instance: Instance, answers: Sequence[OptionAnswer]) -> list[str]:
    """What a person should look at before buying."""
    found = []
    if instance.kv_memory_bytes <= 0:
        weights, missing = bytes_text(instance.weight_bytes or 0), bytes_text(instance.missing_bytes)
        found.append(
            f"{instance.model}: weights of {weights} leave no accelerator memory for KV, {missing} are"
            " missing: take more cards or narrower weights"
        )
    for answer in answers:
        found += [f"{answer.name}: {text}" for text in _of_option(answer)]
    return found


def _of_option(answer: OptionAnswer) -> list[str]:
    plan, found = answer.plan, []
    if not plan.sessions:
        found.append(limit_text(answer)[0].lower() + limit_text(answer)[1:])
    cap = answer.power_cap
    if cap is not None and answer.cost.watts > cap:
        found.append(
            f"draws {money_text(answer.cost.watts)} W, the cap is {money_text(cap)} W:"
            f" {money_text(answer.cost.watts - cap)} W too much"
        )
    found += [
        f"tier {tier.name}: to load a session takes {time_text(tier.ttft_alone_ns)}, to compute it again"
        f" {time_text(plan.recompute_ns)}: it is not worth having for these sessions"
        for tier in plan.tiers
        if not tier.worth_having
    ]
    found += [
        f"tier {tier.name} costs {money_text(tier.price_per_gb)} per GB and pays up to"
        f" {money_text(tier.break_even_price_per_gb)} only"
        for tier in answer.tiers
        if tier.break_even_price_per_gb is not None and tier.price_per_gb > tier.break_even_price_per_gb
    ]
    if plan.prefill_load > 1:
        found.append(
            f"the prompts of all returns keep {plan.prefill_load:.2g} such instances busy:"
            f" one serves {count_text(int(plan.sessions / plan.prefill_load))} of the sessions"
        )
    return found
