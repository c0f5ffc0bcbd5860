"""The timing constants of a model on a card: fitted ones where there are some, else derived from data sheets.

Derivation (kvpool's own, checked against the fitted sets: `kappa / k_d` of H200 and H100 is 94 % and 95 %
of the HBM rate, and `b_p` of Qwen3-8B on H200 is that of 85 % of the product rate):

    k_d = kappa / (0.94 * HBM rate)                a_d = weight bytes / (0.9 * HBM rate) + 2 ms
    b_p = 2 * active parameters / (0.85 * F)       c_p = 2 * layers * attention dim / (0.5 * F16)
    a_p = 2 ms                                     b_d = 0.4 * b_p

F is the product rate at the width that is served, F16 that of 16-bit numbers: attention is not quantised. The
fitted `b_d` are 0.17 to 0.41 of `b_p`. Over tensor-parallel ranks all rates add up; what their exchange
costs is not in here. `a_d` reads every weight, as a step of a large batch does, also of a model with many
experts.
"""

from dataclasses import replace
from typing import Final

from kvpool.plan.timing.cards import Card
from kvpool.plan.timing.model import NS_PER_SECOND, TimingModel
from kvpool.plan.timing.provenance import Constants, Provenance
from kvpool.plan.timing.quantisation import BF16, Quantisation
from kvpool.plan.timing.shapes import ModelShape, Ranks

HBM_SHARE_OF_KV: Final = 0.94
HBM_SHARE_OF_WEIGHTS: Final = 0.9
PRODUCT_SHARE: Final = 0.85
ATTENTION_SHARE: Final = 0.5
STEP_OVERHEAD_NS: Final = 2_000_000
SEQUENCE_SHARE: Final = 0.4

_MS: Final = 1_000_000
_FIT: Final = "kvpool's fit to the vLLM tables of AIConfigurator 0.12"


def _fit(prefill: tuple[float, float, float], step: tuple[float, float, float], error: float) -> Constants:
    """Constants from milliseconds."""
    timing = TimingModel(*(value * _MS for value in (*prefill, *step)))
    return Constants(timing, Provenance.FITTED, _FIT, error)


FITTED: Final = {
    ("H200", "Qwen3-8B", 1): _fit((2.21, 0.01949, 5.00e-7), (5.31, 0.0079, 3.27e-5), 0.056),
    ("H100", "Qwen3-8B", 1): _fit((1.00, 0.02048, 4.19e-7), (7.16, 0.0035, 4.63e-5), 0.13),
    ("H200", "Qwen3-32B", 2): _fit((0.0, 0.0519, 7.69e-7), (10.8, 0.0206, 2.93e-5), 0.021),
}
"""By card, model and tensor-parallel ranks; all at 16 bits.

H100, Qwen3-8B: the worst error is that of a batch of one; elsewhere it is at most 6.3 %.
"""


def constants_for(
    shape: ModelShape, card: Card, ranks: Ranks | None = None, quantisation: Quantisation = BF16
) -> Constants:
    """Return the constants of a model on so many cards: fitted, fitted and scaled, or derived."""
    ranks = ranks or Ranks()
    fitted = FITTED.get((card.name, shape.name, ranks.tensor)) if ranks.kv == 1 else None
    if fitted is None:
        return derived(shape, card, ranks, quantisation)
    if quantisation == BF16:
        return fitted
    return _scaled(fitted, shape, card, ranks, quantisation)


def derived(shape: ModelShape, card: Card, ranks: Ranks, quantisation: Quantisation = BF16) -> Constants:
    """Return the constants that the data sheets of card and model lead to."""
    hbm = card.hbm_bytes_per_second * ranks.count
    products = card.flops(quantisation.product_bits) * ranks.count
    products16 = card.flops_16bit * ranks.count
    token = 2 * shape.active_parameters / (PRODUCT_SHARE * products) * NS_PER_SECOND
    square = 2 * shape.kv_layers * shape.attention_dim / (ATTENTION_SHARE * products16) * NS_PER_SECOND
    timing = TimingModel(
        prefill_base_ns=STEP_OVERHEAD_NS,
        prefill_token_ns=token,
        prefill_square_ns=square,
        step_base_ns=_weights_ns(shape, hbm, quantisation) + STEP_OVERHEAD_NS,
        step_sequence_ns=SEQUENCE_SHARE * token,
        step_token_ns=_kv_ns(shape, hbm, ranks, quantisation),
    )
    source = f"data sheet of {card.name}, {ranks.count} cards, {quantisation.name}"
    return Constants(timing, Provenance.DATA_SHEET, source)


def _scaled(
    fitted: Constants, shape: ModelShape, card: Card, ranks: Ranks, quantisation: Quantisation
) -> Constants:
    """A fitted set, carried to other number formats by the ratios of the derivation."""
    old, hbm = fitted.timing, card.hbm_bytes_per_second * ranks.count
    faster = card.flops_16bit / card.flops(quantisation.product_bits)
    saved = _weights_ns(shape, hbm, BF16) - _weights_ns(shape, hbm, quantisation)
    timing = replace(
        old,
        prefill_token_ns=old.prefill_token_ns * faster,
        step_base_ns=max(float(STEP_OVERHEAD_NS), old.step_base_ns - saved),
        step_sequence_ns=old.step_sequence_ns * faster,
        step_token_ns=old.step_token_ns * quantisation.kv_bits / BF16.kv_bits,
    )
    source = f"{fitted.source} at {BF16.name}, carried to {quantisation.name} by data sheet"
    return Constants(timing, Provenance.DATA_SHEET, source)


def _weights_ns(shape: ModelShape, hbm_bytes_per_second: int, quantisation: Quantisation) -> float:
    read = quantisation.weight_bytes(shape.parameters)
    return read / (HBM_SHARE_OF_WEIGHTS * hbm_bytes_per_second) * NS_PER_SECOND


def _kv_ns(shape: ModelShape, hbm_bytes_per_second: int, ranks: Ranks, quantisation: Quantisation) -> float:
    """Time to read one token's KV; what every rank holds whole is read by every rank."""
    read = ranks.held_bytes_per_token(shape, quantisation.kv_bits)
    return read / (HBM_SHARE_OF_KV * hbm_bytes_per_second) * NS_PER_SECOND
