"""The two models of an engine, fitted to what it reports while it serves.

    step(B, K)      = a + b * B + k * K
    prefill(L, hit) = a + b * (L - hit) + c * (L^2 - hit^2)

Form and its sources: `kvpool.plan.timing.model`. Method: recursive least squares with exponential forgetting
(Ljung, System Identification, 2nd ed., section 11.2), in `least_squares`.
"""

from dataclasses import dataclass
from typing import Final

from kvpool.plan.calibration.least_squares import FORGETTING, Fit, RecursiveLeastSquares
from kvpool.plan.timing.model import TimingModel

STEP_CONSTANTS: Final = ("step_base_ns", "step_sequence_ns", "step_token_ns")
PREFILL_CONSTANTS: Final = ("prefill_base_ns", "prefill_token_ns", "prefill_square_ns")


@dataclass(frozen=True, slots=True)
class StepSample:
    """One decode iteration."""

    running: int
    kv_tokens: int
    spent_ns: int


@dataclass(frozen=True, slots=True)
class PrefillSample:
    """One prefill that had the instance alone."""

    prompt_tokens: int
    hit_tokens: int
    spent_ns: int


class ServingFit:
    """Both models of one instance, from its samples so far."""

    __slots__ = ("_prefill", "_step")

    def __init__(self, forgetting: float = FORGETTING) -> None:
        self._step = RecursiveLeastSquares(len(STEP_CONSTANTS), forgetting)
        self._prefill = RecursiveLeastSquares(len(PREFILL_CONSTANTS), forgetting)

    def add_step(self, sample: StepSample) -> None:
        """Take in one decode iteration."""
        self._step.add((1.0, float(sample.running), float(sample.kv_tokens)), float(sample.spent_ns))

    def add_prefill(self, sample: PrefillSample) -> None:
        """Take in one prefill."""
        fresh = sample.prompt_tokens - sample.hit_tokens
        squares = sample.prompt_tokens**2 - sample.hit_tokens**2
        self._prefill.add((1.0, float(fresh), float(squares)), float(sample.spent_ns))

    def step(self) -> Fit:
        """The decode model now; constants in the order of `STEP_CONSTANTS`."""
        return self._step.fit()

    def prefill(self) -> Fit:
        """The prefill model now; constants in the order of `PREFILL_CONSTANTS`."""
        return self._prefill.fit()


def timing_of(prefill: Fit, step: Fit) -> TimingModel:
    """The timing model of two fits. Check them first (`kvpool.plan.calibration.acceptance`)."""
    return TimingModel(*prefill.constants, *step.constants)
