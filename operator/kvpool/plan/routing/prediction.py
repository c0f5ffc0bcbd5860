"""How long an answer will be: a mean for time, and an upper bound with a stated coverage for memory.

The mean: an exponentially weighted mean of log length for each (class, client), corrected by the mean of the
last ratios of true to predicted length. The bound: prediction x the (1 - alpha) quantile of the same ratios,
taken one rank up as in split conformal prediction, so that a share of 1 - alpha of new lengths lies below it
when they are exchangeable with the last ones. That bounds serve memory better than point estimates: "MAPS"
(arXiv 2609.15359, abstract); the rest is kvpool's own derivation.
"""

import math
from dataclasses import dataclass

from kvpool.plan.sliding_window import SlidingWindow


@dataclass(frozen=True, slots=True)
class PredictionSettings:
    """How fast a prediction follows, and what its bound promises."""

    alpha: float = 0.1
    """Share of answers that may be longer than their bound."""
    smoothing: float = 0.05
    """Weight of the newest log length."""
    ratios: int = 500
    """How many of the last ratios of true to predicted length are kept for each class."""
    first_tokens: int = 256
    """Prediction before any answer was seen."""
    most_tokens: int = 8192
    """No answer is longer: the limit of the engine, and the bound while too few were seen."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected length of one answer. Tokens, at least 1."""

    mean_tokens: int
    bound_tokens: int


class LengthPredictor:
    """Learns from answers that ended; asked before each one that begins."""

    def __init__(self, settings: PredictionSettings | None = None) -> None:
        self._settings = settings or PredictionSettings()
        self._log_means: dict[tuple[str, str], float] = {}
        self._windows: dict[str, SlidingWindow] = {}

    def predict(self, slo_class: str, client: str) -> Prediction:
        """Of a client that was not seen yet, what its class has; of a class not seen, the first setting."""
        settings = self._settings
        centre = self._centre(slo_class, client)
        window = self._windows.get(slo_class)
        ratio = window.mean() if window else None
        mean = centre if ratio is None else centre * ratio
        upper = window.upper(settings.alpha) if window else None
        bound = settings.most_tokens if upper is None else math.ceil(centre * upper)
        mean_tokens = min(settings.most_tokens, max(1, round(mean)))
        return Prediction(mean_tokens, min(settings.most_tokens, max(mean_tokens, bound)))

    def learn(self, slo_class: str, client: str, output_tokens: int) -> None:
        """Take in the true length of an answer, at least 1 token."""
        window = self._windows.setdefault(slo_class, SlidingWindow(self._settings.ratios))
        window.add(output_tokens / self._centre(slo_class, client))
        for key in ((slo_class, client), (slo_class, "")) if client else ((slo_class, ""),):
            before = self._log_means.get(key)
            newest = math.log(output_tokens)
            weight = self._settings.smoothing
            self._log_means[key] = newest if before is None else before + weight * (newest - before)

    def _centre(self, slo_class: str, client: str) -> float:
        for key in ((slo_class, client), (slo_class, "")):
            if key in self._log_means:
                return math.exp(self._log_means[key])
        return float(self._settings.first_tokens)
