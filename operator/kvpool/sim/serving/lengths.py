"""What routers believe of the length of an answer: the truth, the truth with an error, or what was learnt."""

import math
from typing import Protocol

from kvpool.plan.routing.prediction import LengthPredictor, Prediction
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import Request


class Lengths(Protocol):
    """Predicts lengths of answers."""

    def predict(self, number: int, request: Request) -> Prediction:
        """Before a request is sent: mean and bound, each at least 1 token."""

    def learn(self, request: Request) -> None:
        """When a request has ended."""


class ExactLengths:
    """The truth, as if an oracle told it."""

    def predict(self, number: int, request: Request) -> Prediction:
        """The true length, twice."""
        return Prediction(request.output_tokens, request.output_tokens)

    def learn(self, request: Request) -> None:
        """Nothing to learn."""


class NoisyLengths:
    """The truth times a lognormal error of median 1, drawn for each request from a stream of its own."""

    def __init__(self, draws: Stream, sigma: float, bound_factor: float = 1.0) -> None:
        self._draws = draws
        self._sigma = sigma
        self._bound_factor = bound_factor

    def predict(self, number: int, request: Request) -> Prediction:
        """The prediction does not depend on which requests came before."""
        drawn = self._draws.split(number).lognormal(float(request.output_tokens), self._sigma)
        mean = max(1, round(drawn))
        return Prediction(mean, max(1, math.ceil(mean * self._bound_factor)))

    def learn(self, request: Request) -> None:
        """Nothing to learn."""


class LearntLengths:
    """The planner's own predictor, which learns from answers as they end."""

    def __init__(self, predictor: LengthPredictor) -> None:
        self._predictor = predictor

    def predict(self, number: int, request: Request) -> Prediction:
        """By class of service and client."""
        return self._predictor.predict(request.slo_class, request.client)

    def learn(self, request: Request) -> None:
        """The true length is known when the answer has ended."""
        self._predictor.learn(request.slo_class, request.client, request.output_tokens)
