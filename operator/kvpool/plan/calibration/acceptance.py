"""Whether fitted constants may be used: no fit may be better than the hardware can be.

A decode step must at least read its KV from memory, `k >= kappa / B_peak`; a prompt token must at least be
multiplied out, `b >= 2 N / F_peak`. Constants are times, so none is negative. Samples must tell the constants
apart (condition number below 1e6) and the model must explain them (R squared above 0.9).
Source of bounds and limits: kvpool's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvpool.plan.calibration.least_squares import Fit
from kvpool.plan.calibration.models import PREFILL_CONSTANTS, STEP_CONSTANTS
from kvpool.plan.timing.model import NS_PER_SECOND

MOST_CONDITION: Final = 1e6
LEAST_R_SQUARED: Final = 0.9
LEAST_SAMPLES: Final = 30


class Rule(StrEnum):
    """What a fit must keep."""

    SAMPLES = "Samples"
    CONDITION = "Condition"
    EXPLAINED = "Explained"
    NOT_NEGATIVE = "NotNegative"
    PHYSICAL = "Physical"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One rule that a fit breaks."""

    rule: Rule
    text: str


@dataclass(frozen=True, slots=True)
class Hardware:
    """What a card and a model set as a limit."""

    memory_bytes_per_second: int
    """Peak, all cards of the instance together."""
    flops_per_second: int
    """Peak at the serving type, all cards of the instance together."""
    kv_bytes_per_token: int
    active_parameters: int


def refusals_of_step(fit: Fit, hardware: Hardware) -> Sequence[Refusal]:
    """Why a fit of the decode model may not be used; empty: it may."""
    floor_ns = hardware.kv_bytes_per_token * NS_PER_SECOND / hardware.memory_bytes_per_second
    return (
        *_of_quality(fit, "decode", "batch and context"),
        *_of_constants(fit, STEP_CONSTANTS),
        *_of_floor(fit, STEP_CONSTANTS, 2, floor_ns, "reading its KV at the memory's peak rate"),
    )


def refusals_of_prefill(fit: Fit, hardware: Hardware) -> Sequence[Refusal]:
    """Why a fit of the prefill model may not be used; empty: it may."""
    floor_ns = 2 * hardware.active_parameters * NS_PER_SECOND / hardware.flops_per_second
    return (
        *_of_quality(fit, "prefill", "prompt lengths and cached prefixes"),
        *_of_constants(fit, PREFILL_CONSTANTS),
        *_of_floor(fit, PREFILL_CONSTANTS, 1, floor_ns, "multiplying it out at the peak rate"),
    )


def _of_quality(fit: Fit, model: str, vary: str) -> list[Refusal]:
    found = []
    if fit.samples < LEAST_SAMPLES:
        found.append(
            Refusal(
                Rule.SAMPLES, f"{fit.samples} {model} samples, of at least {LEAST_SAMPLES}: wait for more"
            )
        )
    if fit.condition >= MOST_CONDITION:
        found.append(
            Refusal(
                Rule.CONDITION,
                f"condition number {fit.condition:.3g} of the {model} samples is not below "
                f"{MOST_CONDITION:.0e}: they do not tell its constants apart; vary {vary}",
            )
        )
    elif fit.r_squared <= LEAST_R_SQUARED:
        found.append(
            Refusal(
                Rule.EXPLAINED,
                f"the {model} model explains {100 * fit.r_squared:.1f} % of the spread of its samples, not "
                f"more than {100 * LEAST_R_SQUARED:.0f} %: something else takes time on this instance",
            )
        )
    return found


def _of_constants(fit: Fit, names: Sequence[str]) -> list[Refusal]:
    if fit.condition >= MOST_CONDITION:
        return []
    return [
        Refusal(Rule.NOT_NEGATIVE, f"{name} is {value:.6g}: a time cannot be negative")
        for name, value in zip(names, fit.constants, strict=True)
        if value < 0
    ]


def _of_floor(fit: Fit, names: Sequence[str], index: int, floor_ns: float, what: str) -> list[Refusal]:
    value = fit.constants[index]
    if fit.condition >= MOST_CONDITION or not 0 <= value < floor_ns:
        return []
    return [
        Refusal(
            Rule.PHYSICAL,
            f"{names[index]} is {value:.6g} ns, {floor_ns - value:.3g} ns less than a token needs for {what} "
            f"({floor_ns:.6g} ns): the samples, or the card that was named, are wrong",
        )
    ]
