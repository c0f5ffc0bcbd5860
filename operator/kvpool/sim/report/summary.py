"""Turns what became of each request into the figures of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence

from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.model import TimingModel
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.report.figures import (
    Alone,
    BoundaryFigures,
    Calibration,
    ClassFigures,
    Event,
    Inputs,
    Latencies,
    LinkFigures,
    Quantiles,
    Report,
    TierFigures,
    TooLarge,
    Totals,
)
from kvpool.sim.serving.outcome import Outcome
from kvpool.sim.serving.run import FleetRun


def quantiles(durations_ns: Sequence[int]) -> Quantiles:
    """Return mean and quantiles by nearest rank: the smallest member with a share of `q` at or below it."""
    if not durations_ns:
        return Quantiles(0, 0, 0, 0, 0, 0)
    ordered = sorted(durations_ns)
    count = len(ordered)
    p50, p95, p99 = (ordered[-(-count * percent // 100) - 1] for percent in (50, 95, 99))
    return Quantiles(count, sum(ordered) // count, p50, p95, p99, ordered[-1])


def latencies(served: Sequence[Outcome]) -> Latencies:
    """Return how long those requests took; refused ones are not to be among them."""
    return Latencies(
        quantiles([one.ttft_ns for one in served]),
        quantiles([one.tpot_ns for one in served if one.output_tokens > 1]),
        quantiles([one.e2e_ns for one in served]),
    )


def summarise(
    name: str,
    run: FleetRun,
    objectives: Mapping[str, Objective],
    inputs: Inputs,
    calibration: Sequence[Calibration],
    bytes_per_token: int,
    fastest: TimingModel,
) -> Report:
    """Return the report of one run. `fastest` are the constants of the fastest instance."""
    served = [one for one in run.outcomes if not one.refused]
    return Report(
        name=name,
        inputs=inputs,
        calibration=tuple(calibration),
        totals=_totals(run, served),
        classes=tuple(
            _class(slo_class, objective, [one for one in run.outcomes if one.slo_class == slo_class], fastest)
            for slo_class, objective in sorted(objectives.items())
        ),
        tiers=tuple(_tiers(served, bytes_per_token)),
        boundaries=tuple(_boundaries(run)),
        links=tuple(
            LinkFigures(link, use.moved_bytes, use.busy_ns / run.end_ns if run.end_ns else 0.0)
            for link, use in run.links.items()
        ),
        timeline=run.samples,
        events=tuple(Event(time_ns, text) for time_ns, text in run.events),
    )


def _totals(run: FleetRun, served: Sequence[Outcome]) -> Totals:
    refused = Counter(one.refused for one in run.outcomes if one.refused)
    return Totals(
        requests=len(run.outcomes),
        served=len(served),
        refused=dict(sorted(refused.items())),
        end_ns=run.end_ns,
        prompt_tokens=sum(one.prompt_tokens for one in served),
        output_tokens=sum(one.output_tokens for one in served),
        hit_tokens=sum(one.hit_tokens for one in served),
        computed_tokens=run.computed_tokens,
        recomputed_tokens=sum(one.recomputed_tokens for one in served),
        preempted=sum(one.preempted for one in served),
        decode_steps=run.decode_steps,
        evicted_blocks=run.evicted_blocks,
        unique_share=run.unique_share,
        capacity_tokens=run.capacity_tokens,
        lower_capacity_tokens=dict(run.lower_capacity_tokens),
        too_large=_too_large([one for one in run.outcomes if one.needed_tokens]),
    )


def _too_large(refused: Sequence[Outcome]) -> TooLarge:
    return TooLarge(
        len(refused),
        max((one.needed_tokens for one in refused), default=0),
        min((one.room_tokens for one in refused), default=0),
    )


def _class(
    slo_class: str, objective: Objective, outcomes: Sequence[Outcome], fastest: TimingModel
) -> ClassFigures:
    served = [one for one in outcomes if not one.refused]
    met = sum(one.keeps(objective) for one in served)
    return ClassFigures(
        slo_class,
        len(outcomes),
        len(outcomes) - len(served),
        met,
        objective.ttft_ns,
        objective.tpot_ns,
        latencies(served),
        _alone(served, objective, fastest),
    )


def _alone(served: Sequence[Outcome], objective: Objective, fastest: TimingModel) -> Alone:
    ttfts = [fastest.prefill_ns(one.prompt_tokens, one.hit_tokens) for one in served]
    tpots = [fastest.step_ns(1, one.prompt_tokens) if one.output_tokens > 1 else 0 for one in served]
    too_slow = sum(
        ttft > objective.ttft_ns or tpot > objective.tpot_ns for ttft, tpot in zip(ttfts, tpots, strict=True)
    )
    return Alone(min(ttfts, default=0), min(filter(None, tpots), default=0), too_slow)


def _tiers(served: Sequence[Outcome], bytes_per_token: int) -> list[TierFigures]:
    return [
        TierFigures(
            tier.name,
            len(touched),
            sum(sum(one.loaded_tokens.values()) for one in touched) * bytes_per_token,
            latencies(touched),
        )
        for tier in Tier
        if (touched := [one for one in served if one.deepest is tier])
    ]


def _boundaries(run: FleetRun) -> list[BoundaryFigures]:
    promoted: Counter[str] = Counter()
    demoted: Counter[str] = Counter()
    for name, count_bytes in run.demoted_bytes.items():
        tier = name.partition("-")[0]
        demoted[tier] += count_bytes
        promoted[tier] += run.links[name].moved_bytes
    return [BoundaryFigures(tier, promoted[tier], demoted[tier]) for tier in demoted]
