"""What the planner said of every option, for programs."""

import math
from collections.abc import Sequence

from pydantic import JsonValue

from kvpool.cli.planning.sizing.asking import Instance, OptionAnswer
from kvpool.cli.planning.sizing.options import SizingFile
from kvpool.cli.planning.sizing.spares import SpareAnswer
from kvpool.cli.views.figures import as_document, as_json
from kvpool.plan.tiers.sensitivity import Sway


def size_document(
    file: SizingFile, instance: Instance, answers: Sequence[OptionAnswer], spares: SpareAnswer | None
) -> dict[str, JsonValue]:
    """Return the answer for programs: JSON types only, bytes as integers, times in nanoseconds."""
    return as_document(
        {
            "instance": instance,
            "currency": file.currency,
            "options": [_option_document(answer) for answer in answers],
            "spares": spares,
        }
    )


def _option_document(answer: OptionAnswer) -> dict[str, JsonValue]:
    plan = answer.plan
    document = as_document(
        {
            "name": answer.name,
            "sessions": plan.sessions,
            "firmSessions": plan.firm_sessions,
            "baseSessions": plan.base_sessions,
            "gain": plan.gain,
            "limitedBy": plan.binding.kind,
            "limits": plan.limits,
            "cost": answer.cost,
            "powerCap": answer.power_cap,
            "returnsPerSecond": plan.returns_per_second,
            "prefillLoad": plan.prefill_load,
            "recomputeNs": plan.recompute_ns,
            "linkLoads": plan.link_loads,
            "pooling": answer.pooling,
            "sensitivity": [_sway_document(sway) for sway in answer.sensitivity],
        }
    )
    more = {tier.name: tier for tier in answer.tiers}
    tiers: list[JsonValue] = []
    for tier in plan.tiers:
        row = as_json(tier)
        assert isinstance(row, dict)
        if math.isinf(tier.ttft_quantile_ns):
            row["ttftQuantileNs"] = None
        lower = as_json(more[tier.name]) if tier.name in more else {}
        assert isinstance(lower, dict)
        tiers.append({**row, **lower})
    return {**document, "tiers": tiers}


def _sway_document(sway: Sway) -> JsonValue:
    half, twice = (
        {
            "sessions": plan.sessions,
            "limitedBy": plan.binding.kind,
            "where": plan.binding.where,
            "pricePerSession": cost.price_per_session,
        }
        for plan, cost in zip(sway.plans, sway.costs, strict=True)
    )
    return as_json({"constant": sway.constant, "half": half, "twice": twice})
