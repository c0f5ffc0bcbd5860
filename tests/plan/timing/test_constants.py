"""Derived timing constants lie near the fitted ones, and number formats change them as they should."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.timing.cards import CARDS, LINKS, Card
from kvpool.plan.timing.constants import FITTED, constants_for, derived
from kvpool.plan.timing.provenance import Provenance
from kvpool.plan.timing.quantisation import BF16, QUANTISATIONS, Quantisation
from kvpool.plan.timing.shapes import SHAPES, ModelShape, Ranks

KNOWN = sorted(FITTED)


@pytest.mark.parametrize(("card", "model", "tensor"), KNOWN)
def test_kv_bytes_over_their_time_are_95_percent_of_the_hbm_rate(card: str, model: str, tensor: int) -> None:
    timing = FITTED[card, model, tensor].timing
    rate = SHAPES[model].kv_bytes_per_token() / timing.step_token_ns * 1e9
    assert rate / (CARDS[card].hbm_bytes_per_second * tensor) == pytest.approx(0.94, abs=0.015)


@pytest.mark.parametrize(("card", "model", "tensor"), KNOWN)
def test_derived_constants_lie_near_the_fitted_ones(card: str, model: str, tensor: int) -> None:
    fitted = FITTED[card, model, tensor].timing
    ours = derived(SHAPES[model], CARDS[card], Ranks(tensor)).timing
    assert ours.step_token_ns == pytest.approx(fitted.step_token_ns, rel=0.02)
    assert ours.step_base_ns == pytest.approx(fitted.step_base_ns, rel=0.15)
    assert ours.prefill_token_ns == pytest.approx(fitted.prefill_token_ns, rel=0.3)
    assert ours.prefill_square_ns == pytest.approx(fitted.prefill_square_ns, rel=0.45)


ROUND_CARD = Card("round", 1, 10**12, 10**15, 2 * 10**15, 0, 1)
ROUND_SHAPE = ModelShape("round", 10, 1_000, 900_000_000, 850_000_000, kv_heads=47, head_dim=10)


@pytest.mark.parametrize(
    ("served", "token_ns", "weights_ns", "kv_token_ns"),
    [
        # 2 * 0.85e9 products at 85 % of 1e15; 1.8e9 bytes at 90 % of 1e12; 18,800 bytes at 94 % of it.
        (BF16, 2_000, 2_000_000, 20),
        (QUANTISATIONS["W8A8"], 1_000, 1_000_000, 20),
        (QUANTISATIONS["W8A16"].with_kv(8), 2_000, 1_000_000, 10),
    ],
)
def test_derived_constants_of_round_numbers_are_round(
    served: Quantisation, token_ns: float, weights_ns: float, kv_token_ns: float
) -> None:
    found = derived(ROUND_SHAPE, ROUND_CARD, Ranks(), served).timing
    # Attention: 2 * 10 layers * 1,000 at half of 1e15, whatever the weights are served in.
    prefill = (2_000_000, token_ns, 0.04)
    step = (2_000_000 + weights_ns, 0.4 * token_ns, kv_token_ns)
    assert astuple(found) == pytest.approx((*prefill, *step))


def test_fitted_constants_are_those_of_so_many_tensor_parallel_ranks() -> None:
    shape, card = SHAPES["Qwen3-32B"], CARDS["H200"]
    assert constants_for(shape, card, Ranks(2)) is FITTED["H200", "Qwen3-32B", 2]
    assert constants_for(shape, card).provenance is Provenance.DATA_SHEET


def test_fitted_constants_of_two_cards_save_the_weights_of_half_a_card_each() -> None:
    fitted = FITTED["H200", "Qwen3-32B", 2].timing
    shape, card = SHAPES["Qwen3-32B"], CARDS["H200"]
    found = constants_for(shape, card, Ranks(2), QUANTISATIONS["W8A8"]).timing
    saved_ns = 32.76e9 / (0.9 * 2 * 4.8e12) * 1e9
    assert found.step_base_ns == pytest.approx(fitted.step_base_ns - saved_ns)
    assert found.step_sequence_ns == pytest.approx(fitted.step_sequence_ns * 989 / 1_979)
    assert found.step_token_ns == fitted.step_token_ns


def test_a_data_sheet_is_taken_in_the_units_that_it_is_written_in() -> None:
    tera = 10**12
    assert CARDS["B200"] == Card(
        "B200", 180 * 10**9, 8 * tera, 2_250 * tera, 4_500 * tera, 9_000 * tera, 1_000
    )


def test_a_known_pair_is_given_its_fitted_constants_with_error_and_source() -> None:
    found = constants_for(SHAPES["Qwen3-8B"], CARDS["H200"])
    assert (found.provenance, found.worst_error) == (Provenance.FITTED, 0.056)
    assert "AIConfigurator 0.12" in found.source
    assert found.timing.prefill_ns(16_384) == pytest.approx(455.7e6, rel=0.01)
    assert found.timing.step_ns(32, 524_288) == pytest.approx(22.7e6, rel=0.01)


def test_an_unknown_pair_is_marked_as_taken_from_data_sheets() -> None:
    for shape, ranks in ((SHAPES["Llama-3.1-70B"], Ranks(4)), (SHAPES["Qwen3-8B"], Ranks(1, kv=2))):
        found = constants_for(shape, CARDS["H200"], ranks)
        assert (found.provenance, found.worst_error) == (Provenance.DATA_SHEET, None)
        assert "H200" in found.source


def test_what_was_carried_to_another_number_format_is_not_called_fitted() -> None:
    found = constants_for(SHAPES["Qwen3-8B"], CARDS["H200"], quantisation=QUANTISATIONS["W8A8"])
    plain = constants_for(SHAPES["Qwen3-8B"], CARDS["H200"]).timing
    assert found.provenance is Provenance.DATA_SHEET
    assert found.timing.prefill_token_ns == pytest.approx(plain.prefill_token_ns / 2, rel=0.01)
    assert found.timing.prefill_square_ns == plain.prefill_square_ns
    saved = plain.step_base_ns - found.timing.step_base_ns
    assert saved == pytest.approx(8.19e9 / (0.9 * 4.8e12) * 1e9, rel=0.01)


def test_narrow_kv_halves_the_time_to_read_it() -> None:
    plain = constants_for(SHAPES["Qwen3-8B"], CARDS["H200"]).timing
    narrow = constants_for(SHAPES["Qwen3-8B"], CARDS["H200"], quantisation=BF16.with_kv(8)).timing
    assert narrow.step_token_ns == plain.step_token_ns / 2
    assert narrow.prefill_token_ns == plain.prefill_token_ns


def test_a_card_without_a_format_multiplies_in_the_next_wider_one() -> None:
    assert CARDS["H200"].flops(4) == CARDS["H200"].flops_8bit
    assert CARDS["B200"].flops(4) == 2 * CARDS["B200"].flops(8)
    assert CARDS["H200"].flops(16) == CARDS["H200"].flops_16bit


def test_weights_of_four_bits_carry_their_scales() -> None:
    assert QUANTISATIONS["W4A16"].weight_bytes(16_000) == 9_000
    assert BF16.weight_bytes(16_000) == 32_000
    assert QUANTISATIONS["W8A8"].weight_bytes(3) == 3


def test_another_width_of_kv_changes_nothing_else() -> None:
    assert QUANTISATIONS["W8A8"].with_kv(4) == Quantisation("W8A8", 8, 8, 4)


@given(
    st.sampled_from(sorted(SHAPES)),
    st.sampled_from(sorted(CARDS)),
    st.sampled_from(sorted(QUANTISATIONS)),
    st.sampled_from([1, 2, 4, 8]),
)
def test_more_cards_and_narrower_numbers_are_no_slower(model: str, card: str, name: str, tensor: int) -> None:
    shape = SHAPES[model]
    one = constants_for(shape, CARDS[card], Ranks(tensor)).timing
    narrow = constants_for(shape, CARDS[card], Ranks(tensor), QUANTISATIONS[name]).timing
    assert narrow.prefill_ns(10_000) <= one.prefill_ns(10_000)
    assert narrow.step_ns(32, 100_000) <= one.step_ns(32, 100_000)
    more = derived(shape, CARDS[card], Ranks(2 * tensor)).timing
    assert more.prefill_ns(10_000) <= derived(shape, CARDS[card], Ranks(tensor)).timing.prefill_ns(10_000)


def test_links_carry_what_they_are_said_to() -> None:
    assert LINKS["InfiniBand-400G"].transfer_ns(40_000_000_000) == 1_000_000_000 + 1_000_000
    assert LINKS["PCIe5-x16"].transfer_ns(147_456) == 20_000 + 2_950
