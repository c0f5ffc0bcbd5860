"""Attention to experts: the share that is sent, periods, the best ratio by scan and by closed form."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.ratio.attention_ffn import (
    DECODE_DEGRADATION,
    Batch,
    Layer,
    Stages,
    closed_form_ratio,
    layer,
    plan_attention_experts,
    sent_share,
    tokens_per_second,
)

STAGES = Stages(
    attention_base_ns=5_000,
    attention_sequence_ns=50,
    attention_token_ns=0.02,
    expert_base_ns=20_000,
    expert_token_ns=100,
    exchange_setup_ns=3_000,
    exchange_bytes_per_second=200 * 10**9,
    bytes_per_token=7_168,
    sent_share=Fraction(1),
)
BATCH = Batch(sequences=64, context_tokens=64 * 30_000, micro_batches=4, layers=61)


def test_a_token_reaches_a_node_unless_all_its_experts_are_elsewhere() -> None:
    assert sent_share(256, 1, 8) == 1
    assert sent_share(4, 2, 1) == Fraction(1, 2)
    assert sent_share(4, 2, 2) == 1 - Fraction(1, 6)
    assert float(sent_share(256, 8, 8)) == pytest.approx(0.661, abs=0.002)


@pytest.mark.parametrize(("experts", "nodes", "chosen"), [(10, 3, 2), (8, 0, 1), (8, 2, 9), (8, 2, 0)])
def test_experts_that_cannot_be_spread_are_refused(experts: int, nodes: int, chosen: int) -> None:
    with pytest.raises(ValueError, match="experts over"):
        sent_share(experts, nodes, chosen)


def test_stages_are_the_sums_of_their_parts() -> None:
    times = layer(STAGES, BATCH, ratio=3)
    assert times.attention_ns == 5_000 + 50 * 64 + 0.02 * 64 * 30_000
    assert times.expert_ns == 20_000 + 100 * 3 * 64
    assert times.exchange_ns == pytest.approx(3_000 + 64 * 7_168 / 200)


def test_with_two_micro_batches_the_transfers_show_and_with_four_only_the_longest_stage_does() -> None:
    four = layer(STAGES, BATCH, ratio=3)
    assert four.period_ns == max(four.attention_ns, four.expert_ns, four.exchange_ns)
    three = layer(STAGES, replace(BATCH, micro_batches=3), ratio=3)
    assert three.period_ns == four.period_ns
    balanced = replace(STAGES, attention_token_ns=0.0, attention_base_ns=36_000)
    two = layer(balanced, replace(BATCH, micro_batches=2), ratio=3)
    assert two.attention_ns == two.expert_ns
    assert two.period_ns == two.attention_ns + two.exchange_ns
    one = layer(balanced, replace(BATCH, micro_batches=1), ratio=3)
    assert one.period_ns == two.attention_ns + two.expert_ns + 2 * two.exchange_ns


def test_tokens_a_second_are_those_of_all_layers_and_instances() -> None:
    period = layer(STAGES, BATCH, 3).period_ns
    assert tokens_per_second(STAGES, BATCH, 3) == pytest.approx(
        DECODE_DEGRADATION * 3 * 64 / (4 * 61 * period) * 1e9
    )


def test_the_scan_lies_beside_the_closed_form() -> None:
    plan = plan_attention_experts(STAGES, BATCH)
    assert abs(plan.ratio - plan.closed_form) < 1
    assert plan.warning == ""


@given(
    st.floats(1_000, 100_000),
    st.floats(0, 0.05),
    st.floats(1_000, 50_000),
    st.floats(1, 300),
    st.integers(10**10, 10**12),
    st.integers(1, 256),
)
def test_no_whole_ratio_beats_the_scan_and_the_closed_form_is_its_neighbour(
    attention: float, token: float, expert: float, expert_token: float, bandwidth: int, sequences: int
) -> None:
    stages = Stages(attention, 50, token, expert, expert_token, 3_000, bandwidth, 7_168, Fraction(2, 3))
    batch = Batch(sequences, sequences * 20_000, micro_batches=4, layers=60)
    plan = plan_attention_experts(stages, batch, most=200)
    best = tokens_per_second(stages, batch, plan.ratio)
    assert all(tokens_per_second(stages, batch, ratio) <= best for ratio in range(1, 201))
    closed = closed_form_ratio(stages, batch)
    if 1 <= closed <= 199:
        beside = max(tokens_per_second(stages, batch, int(closed) + up) for up in (0, 1))
        assert beside == pytest.approx(best, rel=1e-9)


def test_each_term_of_the_closed_form_decides_somewhere() -> None:
    slow_attention = replace(STAGES, attention_base_ns=200_000)
    assert closed_form_ratio(slow_attention, BATCH) == pytest.approx(
        (layer(slow_attention, BATCH, 1).attention_ns - 20_000) / 6_400
    )
    slow_link = replace(STAGES, exchange_bytes_per_second=2 * 10**9)
    assert closed_form_ratio(slow_link, BATCH) == pytest.approx(
        (layer(slow_link, BATCH, 1).exchange_ns - 20_000) / 6_400
    )
    costly_start = replace(STAGES, expert_base_ns=200_000, attention_token_ns=0.0)
    assert closed_form_ratio(costly_start, BATCH) == pytest.approx((200_000 / 6_400) ** 0.5)


def test_a_link_slower_than_both_sides_is_a_dead_zone_and_says_what_would_help() -> None:
    plan = plan_attention_experts(replace(STAGES, exchange_bytes_per_second=2 * 10**9), BATCH, most=8)
    assert plan.layer.dead_zone
    assert plan.warning.startswith("dead zone: a transfer takes 232.4 us")
    assert "more expert instances do not help" in plan.warning


@pytest.mark.parametrize(
    ("attention_ns", "expert_ns", "exchange_ns", "dead"),
    [
        (2, 3, 4, True),
        (3, 2, 4, True),
        (2, 3, 3, False),
        (4, 3, 4, False),
        (5, 3, 4, False),
        (3, 5, 4, False),
    ],
)
def test_a_zone_is_dead_when_a_transfer_takes_longer_than_either_side(
    attention_ns: float, expert_ns: float, exchange_ns: float, *, dead: bool
) -> None:
    assert Layer(attention_ns, expert_ns, exchange_ns, period_ns=99).dead_zone is dead


@pytest.mark.parametrize(("attention_ns", "expert_ns"), [(10_000, 20_000), (20_000, 10_000)])
def test_in_a_dead_zone_the_bandwidth_is_told_that_would_end_it(attention_ns: int, expert_ns: int) -> None:
    stages = Stages(attention_ns, 0, 0, expert_ns, 1e-6, 0, 10**9, 1_000, Fraction(1))
    # A transfer of 40 us: with 2.0 times the bandwidth it takes as long as the longer side.
    plan = plan_attention_experts(stages, Batch(40, 0, 4, 1), most=1)
    assert (plan.ratio, plan.layer.period_ns) == (1, 40_000)
    assert "2.0 times the bandwidth would give 100 % more tokens" in plan.warning
    slower = plan_attention_experts(stages, Batch(60, 0, 4, 1), most=1)
    assert "3.0 times the bandwidth would give 200 % more tokens" in slower.warning


def test_every_expert_may_be_chosen() -> None:
    assert sent_share(4, 2, 4) == 1


def test_the_closed_form_knows_no_round_trips() -> None:
    alone = replace(BATCH, micro_batches=1)
    assert closed_form_ratio(STAGES, alone) == closed_form_ratio(STAGES, BATCH)


def test_no_more_ratios_are_tried_than_are_asked_for() -> None:
    costly_start = replace(STAGES, expert_base_ns=10**6)
    assert [plan_attention_experts(costly_start, BATCH, most=most).ratio for most in (1, 2, 5)] == [1, 2, 5]


def test_of_ratios_that_give_the_same_the_smaller_is_taken() -> None:
    # 1 / 2 of a token in 3 us, and 2 / 3 in 4 us.
    stages = Stages(0, 0, 0, 2_000, 1_000, 0, 10**18, 0, Fraction(1))
    batch = Batch(1, 0, 4, 1)
    assert tokens_per_second(stages, batch, 1) == tokens_per_second(stages, batch, 2)
    assert plan_attention_experts(stages, batch, most=2).ratio == 1
