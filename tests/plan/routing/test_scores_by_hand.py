"""The costs and scores of the public baselines, in figures that can be worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from kvpool.plan.routing.counting import LeastLoaded, LengthAware
from kvpool.plan.routing.dynamo import Dynamo, DynamoForm, DynamoSettings, draw_softly
from kvpool.plan.routing.llmd import (
    EXPLORED_SHARE,
    KvScorer,
    LatencyScorer,
    LoadAwareScorer,
    NoHitLruScorer,
    PrefixScorer,
    QueueScorer,
    Scored,
    SloTiered,
    TokenLoadScorer,
    headroom,
)
from kvpool.plan.routing.llmd_limits import SaturationSettings, saturation, splits
from kvpool.plan.routing.views import Objective, Overlap
from kvpool.plan.timing.model import TimingModel
from tests.plan.routing.fleet import Counter, Seen, Sequence, ask

BILLION = 10**9


class Drawn(Counter):
    """Draws the share that it was made with."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def uniform(self) -> float:
        return self.share


def holding(tokens: int, capacity_tokens: int = 54_000, *, waiting: int = 0, prefill_tokens: int = 0) -> Seen:
    return Seen(
        [Sequence(9, tokens, tokens)], capacity_tokens, waiting=waiting, prefill_tokens=prefill_tokens
    )


def test_memory_is_counted_as_a_share_and_then_by_requests() -> None:
    assert LeastLoaded().choose(ask(), [holding(600, capacity_tokens=1_000), holding(700)], 0) == 1
    alike = [holding(100, capacity_tokens=200, waiting=3), holding(200, capacity_tokens=400)]
    assert LeastLoaded().choose(ask(), alike, 0) == 1


def test_of_equal_lengths_fewer_requests_decide_and_not_memory() -> None:
    assert LengthAware().choose(ask(), [holding(100, waiting=3), holding(500)], 0) == 1


REQUEST = replace(
    ask(100), overlaps=(Overlap(device_tokens=8, host_tokens=16, disk_tokens=20), Overlap(device_tokens=200))
)
POOL = [holding(70, prefill_tokens=30), holding(70, prefill_tokens=30)]


@pytest.mark.parametrize(
    ("form", "costs"),
    [
        # Credits 8 + 12 + 5: (30 + 100 - 25) / 10 blocks to prefill, (70 + 100) / 10 that decode.
        (DynamoForm.SUM, [2 * 10.5 + 17, 17.0]),
        (DynamoForm.PRODUCT, [10.5 * 18, 0.0]),
    ],
)
def test_dynamo_counts_blocks_less_its_credits_and_never_less_than_none(
    form: DynamoForm, costs: list[float]
) -> None:
    rule = Dynamo(Counter(), DynamoSettings(form, block_tokens=10, prefill_load_scale=2.0))
    assert rule._costs(REQUEST, POOL) == costs


def test_dynamos_older_cost_is_usage_and_waiting_less_twice_the_overlap() -> None:
    rule = Dynamo(Counter(), DynamoSettings(DynamoForm.OVERLAP))
    pool = [holding(50, capacity_tokens=100, waiting=4), Seen(waiting=1), holding(25, capacity_tokens=100)]
    assert rule._costs(ask(100, overlaps=(50, 0, 0)), pool) == [0.5 + 1.0 - 1.0, 0.25, 0.25]
    assert rule._costs(ask(1, overlaps=(1, 0, 0)), [Seen()] * 3) == [-2.0, 0.0, 0.0]
    assert rule._costs(ask(1), [Seen(waiting=1, capacity_tokens=1), Seen()]) == [1.0, 0.0]


def test_of_equal_costs_dynamo_takes_fewer_requests_and_not_less_memory() -> None:
    pool = [Seen(waiting=2), Seen([Sequence(9, 500, 0)])]
    assert Dynamo(Counter()).choose(ask(), pool, 0) == 1


@pytest.mark.parametrize(
    ("share", "place"), [(0.66, 0), (0.67, 1), (0.90, 1), (0.92, 2), (0.999, 2), (1.0, 2)]
)
def test_a_soft_draw_has_the_odds_of_the_normalised_costs(share: float, place: int) -> None:
    # At temperature 0.5: 1, 1/e and 1/e^2, which is 66.5 %, 24.5 % and 9.0 %.
    assert math.isclose(1 / (1 + math.exp(-1) + math.exp(-2)), 0.665, abs_tol=0.001)
    assert draw_softly([10.0, 20.0, 30.0], 0.5, Drawn(share)) == place
    assert draw_softly([20.0, 10.0], 0.5, Drawn(0.1)) == 0
    assert draw_softly([20.0, 10.0], 0.5, Drawn(0.2)) == 1


def test_equal_costs_are_drawn_with_equal_odds_and_none_at_the_bound_of_another() -> None:
    assert [draw_softly([3.0, 3.0], 9.0, Drawn(share)) for share in (0.0, 0.49, 0.5, 0.9)] == [0, 0, 1, 1]


def test_a_warm_dynamo_draws() -> None:
    cold, warm = Dynamo(Drawn(0.9)), Dynamo(Drawn(0.9), DynamoSettings(temperature=0.5))
    pool = [Seen(), Seen(prefill_tokens=1_000)]
    assert [rule.choose(ask(), pool, 0) for rule in (cold, warm)] == [0, 1]


@pytest.mark.parametrize(
    ("scorer", "pool", "wanted"),
    [
        (QueueScorer(), [Seen(waiting=5), Seen(waiting=1), holding(9, waiting=2)], [0.0, 1.0, 0.75]),
        (QueueScorer(), [Seen(waiting=5), Seen(waiting=5)], [1.0, 1.0]),
        (KvScorer(), [holding(25, capacity_tokens=100), holding(150, capacity_tokens=100)], [0.75, 0.0]),
        (KvScorer(), [Seen(capacity_tokens=1), holding(1, capacity_tokens=1)], [1.0, 0.0]),
        (TokenLoadScorer(), [holding(1_048_576), holding(9_000_000), Seen()], [0.75, 0.0, 1.0]),
        (LoadAwareScorer(), [Seen(waiting=32), Seen(waiting=200), holding(7)], [0.375, 0.0, 0.5]),
    ],
)
def test_llmds_scorers_score(scorer: QueueScorer, pool: list[Seen], wanted: list[float]) -> None:
    assert scorer.score(ask(), pool) == wanted


def test_a_prefix_scores_as_its_share_of_the_prompt() -> None:
    request = replace(ask(200, overlaps=(0, 0, 200)), overlaps=(Overlap(20, 10, 20), Overlap(), Overlap(200)))
    assert PrefixScorer().score(request, [Seen()] * 3) == [0.25, 0.0, 1.0]
    assert PrefixScorer().score(ask(1, overlaps=(1,)), [Seen()]) == [1.0]


def test_cold_requests_rank_instances_from_one_down_to_zero() -> None:
    scorer = NoHitLruScorer()
    scorer.sent(ask(), 0)
    scorer.sent(ask(), 2)
    scorer.sent(ask(overlaps=(1, 0, 0)), 1)
    assert scorer.score(ask(), [Seen()] * 3) == [0.5, 1.0, 0.0]
    assert scorer.score(ask(), [Seen()]) == [1.0]


@pytest.mark.parametrize("rule", [Scored, SloTiered])
def test_cold_requests_go_around_in_a_weighted_choice_too(rule: type[Scored]) -> None:
    found = rule(Counter(), {"NoHitLru": 1.0})
    assert [found.choose(ask(), [Seen()] * 3, 0) for _ in range(5)] == [0, 1, 2, 0, 1]


CROWD = Seen([Sequence(3, 40, 20)], capacity_tokens=50, timing=TimingModel(0, 0, 0, 10, 2, 1), backlog_ns=36)
"""A step with a prompt of 30 more takes 10 + 2 * 2 + 50 ns; 3 of them pass until there is room."""


@pytest.mark.parametrize(
    ("ttft_ns", "tpot_ns", "left"),
    [
        (1_000, 128, 0.8 * 0.708 + 0.2 * 0.5),
        (292, 64, 0.0),
        (1_000, 32, -0.2),
        (146, 128, -0.8),
        (146, 32, -1.0),
    ],
)
def test_the_headroom_is_what_is_left_of_both_promises_and_negative_when_one_is_broken(
    ttft_ns: int, tpot_ns: int, left: float
) -> None:
    # The first token comes after 36 + 3 * 64 + 64 = 292 ns.
    found = headroom(ask(30, 10, objective=Objective(ttft_ns, tpot_ns, 100)), CROWD)
    assert found == pytest.approx(left)


def test_the_least_headroom_that_is_kept_scores_best_and_the_most_that_is_broken_worst() -> None:
    idle = TimingModel(0, 0, 0, 0, 0, 0)
    pool = [Seen(timing=idle, backlog_ns=late * BILLION // 2) for late in (0, 1, 3, 4)]
    request = ask(objective=Objective(BILLION, BILLION, 100))
    # Headrooms 1.0, 0.6, -0.4 and -0.8.
    assert LatencyScorer().score(request, pool) == pytest.approx([0.5, 0.7, 0.3, 0.1], abs=1e-6)
    # Against 0.6, the largest of the two in the middle.
    assert LatencyScorer().score(request, pool[1:3]) == pytest.approx([0.5, 0.5 * (1 - 0.4 / 0.6)], abs=1e-6)


def test_a_headroom_of_nothing_is_kept_and_scores_best() -> None:
    exact = ask(30, 10, objective=Objective(292, 64, 100))
    assert LatencyScorer().score(exact, [CROWD, Seen(timing=TimingModel(0, 0, 0, 1, 0, 0))])[0] == 1.0
    # The other has more free KV, but comes too late.
    assert SloTiered(Counter(), {"Kv": 1.0}).choose(exact, [Seen(backlog_ns=10**12), CROWD], 0) == 1


def test_a_tier_that_breaks_the_promise_is_tried_in_one_of_a_hundred_cases() -> None:
    kept, broken = Seen(), Seen(backlog_ns=10**12)
    chosen = {
        share: SloTiered(Drawn(share), {"Latency": 1.0}).choose(ask(), [kept, broken], 0)
        for share in (0.0, EXPLORED_SHARE - 1e-9, EXPLORED_SHARE, 0.5)
    }
    assert list(chosen.values()) == [1, 1, 0, 0]
    assert SloTiered(Drawn(0.0), {"Latency": 1.0}).choose(ask(), [kept], 0) == 0
    assert SloTiered(Drawn(0.5), {"Latency": 1.0}).choose(ask(), [broken, broken], 0) in (0, 1)


def test_figures_are_old_when_they_are_older_than_their_limit() -> None:
    settings = SaturationSettings(stale_after_ns=100)
    assert [saturation([Seen()], [age], settings) for age in (99, 100, 101)] == [0.0, 0.0, 1.0]
    assert saturation([holding(8, capacity_tokens=10)], [0], SaturationSettings()) == pytest.approx(1.0)
    assert saturation([holding(1, capacity_tokens=1)], [0], SaturationSettings()) == pytest.approx(1.25)


def test_a_prompt_is_split_from_its_threshold_on() -> None:
    assert splits(ask(1_000, overlaps=(488,)), 0)
    assert not splits(ask(1_000, overlaps=(489,)), 0)


def test_a_prefix_is_as_long_as_all_tiers_hold_of_it() -> None:
    assert Overlap(device_tokens=1, host_tokens=10, disk_tokens=100).tokens == 111
