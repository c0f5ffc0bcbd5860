"""Known ways to get the planner's figures wrong: each is put in, and a named test has to notice."""

# ruff: noqa: ANN401 - a mutant replaces functions of any signature

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from kvpool.plan.calibration import acceptance, drift
from kvpool.plan.calibration.least_squares import RecursiveLeastSquares
from kvpool.plan.calibration.transfer_curve import TransferCurve
from kvpool.plan.ratio import latency, rates, recommendation, split
from kvpool.plan.ratio.attention_ffn import Layer
from kvpool.plan.tiers import latency as tier_latency
from kvpool.plan.tiers import limits, planner
from kvpool.plan.timing.cards import Card
from kvpool.plan.timing.model import TimingModel
from kvpool.plan.timing.quantisation import Quantisation
from kvpool.plan.timing.shapes import Ranks
from tests.harness.mutants import Mutant, always, instead, notice
from tests.plan import test_availability
from tests.plan.calibration import test_constants as test_curves
from tests.plan.calibration import test_fits_by_hand, test_fitting
from tests.plan.ratio import test_attention_ffn, test_prefill_decode, test_ratios_by_hand
from tests.plan.tiers import test_breakeven, test_cost, test_limits, test_planner, test_pooling_and_lending
from tests.plan.timing import test_constants, test_model, test_shapes


def _never_binds(right: Any) -> Any:
    return lambda *args, **kwargs: replace(right(*args, **kwargs), sessions=None)


def _last_hop_only(right: Any) -> Any:
    """Bytes from behind two links load the one next to the accelerator, and not the one behind it."""

    def ways(stack: Any, demand: Any) -> Any:
        found = right(stack, demand)
        return tuple(way._replace(links=way.links[:1], busy_ns=way.busy_ns[:1]) for way in found)

    return ways


def _as_if_exclusive(right: Any) -> Any:
    return lambda stack, session_bytes: right(replace(stack, exclusive=True), session_bytes)


def _lower_tiers_for_nothing(right: Any) -> Any:
    return lambda stack, plan: replace(right(stack, plan), saving=plan.gain)


def _one_too_few(right: Any) -> Any:
    def fewest(*args: Any) -> Any:
        found = right(*args)
        return None if found is None else found - 1

    return fewest


def _lent_without_a_way_back(right: Any) -> Any:
    return lambda free, reserve, cap, seconds, _rate: right(free, reserve, cap, seconds, None)


def _one_spare_fewer(right: Any) -> Any:
    return lambda cards, spares, down: right(cards, max(0, spares - 1), down)


def _never_forgets(right: Any) -> Any:
    def add(self: Any, features: Any, value: float) -> None:
        self._forgetting = 1.0
        right(self, features, value)

    return add


def _one_more(right: Any) -> Any:
    return lambda *args: right(*args) + 1


MUTANTS = (
    # Timing
    Mutant(
        "cached tokens that attend to nothing",
        TimingModel,
        "prefill_ns",
        instead(lambda self, prompt, hit=0: replace(self).step_ns(0, 0) if hit else prompt),
        test_model.test_a_prefill_takes_its_base_its_fresh_tokens_and_their_squares,
    ),
    Mutant(
        "weights without the scales of their blocks",
        Quantisation,
        "weight_bytes",
        instead(lambda self, parameters: parameters * int(self.weight_bits) // 8),
        test_constants.test_weights_of_four_bits_carry_their_scales,
    ),
    Mutant(
        "a card that multiplies in every format",
        Card,
        "flops",
        instead(lambda self, product_bits: self.flops_16bit * 16 // product_bits),
        test_constants.test_a_card_without_a_format_multiplies_in_the_next_wider_one,
    ),
    Mutant(
        "heads that are split like bytes",
        Ranks,
        "bytes_per_token_of_rank",
        instead(lambda self, shape, bits=16: -(-shape.kv_bytes_per_token(bits) // self.tensor)),
        test_shapes.test_tensor_parallel_ranks_share_the_heads_until_there_is_one_for_each,
    ),
    # Tiers
    Mutant(
        "a link that never binds",
        planner,
        "bandwidth_limit",
        _never_binds,
        test_planner.test_the_bandwidth_of_the_narrow_link_binds_when_sessions_return_often,
    ),
    Mutant(
        "a drive that never wears out",
        planner,
        "endurance_limit",
        _never_binds,
        test_planner.test_a_day_of_writes_binds_when_the_drive_would_not_last,
    ),
    Mutant(
        "bytes that load the first link of their way only",
        planner,
        "ways",
        _last_hop_only,
        test_planner.test_what_comes_from_behind_a_link_loads_every_link_on_its_way,
    ),
    Mutant(
        "links that nobody waits for",
        limits,
        "waiting_ns",
        always(0.0),
        lambda: test_limits.test_one_more_session_would_wait_longer_than_the_target(20_000_000),
    ),
    Mutant(
        "a wait that is the mean and not the quantile",
        tier_latency,
        "wait_quantile_ns",
        instead(lambda service, load, _quantile: service * load / (2 * (1 - load)) if load < 1 else math.inf),
        lambda: test_limits.test_one_more_session_would_wait_longer_than_the_target(20_000_000),
    ),
    Mutant(
        "loading where computing is faster",
        limits,
        "recompute_ns",
        always(None),
        test_planner.test_loading_that_is_slower_than_computing_is_not_worth_its_tier,
    ),
    Mutant(
        "inclusive tiers that add up",
        planner,
        "places",
        _as_if_exclusive,
        test_planner.test_inclusive_tiers_hold_no_more_than_the_largest,
    ),
    Mutant(
        "lower tiers that cost nothing",
        test_cost,
        "cost_of",
        _lower_tiers_for_nothing,
        test_cost.test_sessions_at_1_to_8_to_64_are_62_times_cheaper_with_the_default_prices,
    ),
    Mutant(
        "a break-even at which loading does not win yet",
        test_breakeven,
        "load_wins_from_tokens",
        _one_too_few,
        test_breakeven.test_with_a_square_alone_loading_wins_where_the_squares_outgrow_the_tokens,
    ),
    Mutant(
        "memory that is lent without the time to give it back",
        test_pooling_and_lending,
        "lendable",
        _lent_without_a_way_back,
        test_pooling_and_lending.test_what_is_lent_is_decided_by_what_is_free_by_a_cap_or_by_the_time_to_return_it,
    ),
    Mutant(
        "a spare too few in the sum of what may be down",
        test_availability,
        "availability",
        _one_spare_fewer,
        lambda: test_availability.test_256_cards_that_are_down_a_thousandth_of_the_time(1, 97.2),
    ),
    # Ratio
    Mutant(
        "a zone that is dead as soon as one side is faster than the transfer",
        Layer,
        "dead_zone",
        instead(property(lambda self: self.exchange_ns > min(self.attention_ns, self.expert_ns))),
        lambda: test_attention_ffn.test_a_zone_is_dead_when_a_transfer_takes_longer_than_either_side(
            5, 3, 4, dead=False
        ),
    ),
    Mutant(
        "a batch that breaks the promise by one sequence",
        rates,
        "_largest_batch",
        _one_more,
        lambda: test_ratios_by_hand.test_the_batch_is_the_largest_that_keeps_the_promise(24, 2),
    ),
    Mutant(
        "hand-offs that take no memory",
        rates,
        "held_tokens",
        lambda right: lambda shapes: right(shapes) // 2,
        test_prefill_decode.test_room_for_hand_offs_is_taken_out_of_decode_memory,
    ),
    Mutant(
        "a ratio that changes for next to nothing",
        recommendation,
        "WORTH_A_CHANGE",
        instead(1.0),
        test_prefill_decode.test_a_ratio_in_place_stays_unless_another_is_five_percent_better,
    ),
    Mutant(
        "two cards for one percent",
        split,
        "EQUAL_SHARE",
        instead(1.0),
        test_ratios_by_hand.test_one_percent_is_not_worth_two_more_cards,
    ),
    Mutant(
        "prompts that are taken for alike",
        latency,
        "_variation",
        always(0.0),
        test_ratios_by_hand.test_a_first_token_waits_by_how_much_prompts_differ,
    ),
    # Calibration
    Mutant(
        "constants that are faster than the memory",
        acceptance,
        "_of_floor",
        always([]),
        lambda: test_fitting.test_a_constant_is_refused_for_its_sign_or_for_its_speed(
            0.5, acceptance.Rule.PHYSICAL
        ),
    ),
    Mutant(
        "samples that are said to tell everything apart",
        acceptance,
        "MOST_CONDITION",
        instead(math.inf),
        test_fitting.test_constants_that_cannot_be_told_apart_are_not_judged_one_by_one,
    ),
    Mutant(
        "samples that never fade",
        RecursiveLeastSquares,
        "add",
        _never_forgets,
        test_fits_by_hand.test_samples_that_fade_count_by_their_weight,
    ),
    Mutant(
        "one window that ends a calibration",
        drift,
        "WINDOWS",
        instead(1),
        test_fitting.test_drift_makes_a_calibration_invalid_after_five_windows_and_not_before,
    ),
    Mutant(
        "a curve that answers from its line",
        TransferCurve,
        "transfer_ns",
        instead(lambda self, size_bytes: self.line.transfer_ns(size_bytes)),
        test_curves.test_answers_come_from_the_points_where_the_line_misses_them,
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.fault)
def test_every_known_fault_is_noticed(mutant: Mutant) -> None:
    notice(mutant)
