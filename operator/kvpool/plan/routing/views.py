"""What a routing rule may look at: the request, and the load of each instance it may go to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kvpool.plan.timing.model import LinkModel, TimingModel


@dataclass(frozen=True, slots=True)
class Objective:
    """What a class of requests was promised, and how much it counts."""

    ttft_ns: int
    tpot_ns: int
    weight: int
    """Percent: 100 for interactive, 50 for batch."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, as a router sees it: the prompt is exact, the output is predicted."""

    prompt_tokens: int
    expected_output_tokens: int
    """The mean: for time."""
    bound_output_tokens: int
    """An upper bound with a stated coverage: for reserving KV."""
    objective: Objective


class Running(Protocol):
    """One sequence that decodes on an instance."""

    @property
    def remaining_tokens(self) -> int:
        """Output still expected, at least 1."""

    @property
    def reserved_tokens(self) -> int:
        """KV that it holds or will: its prompt and the bound of its output."""

    @property
    def objective(self) -> Objective:
        """What it was promised."""


class Instance(Protocol):
    """The load of one decode instance: its last report, corrected by the router's own dispatches."""

    @property
    def running(self) -> int:
        """Sequences in the batch, B."""

    @property
    def kv_tokens(self) -> int:
        """Tokens that a step reads, K."""

    @property
    def reserved_tokens(self) -> int:
        """KV promised to the sequences that run or are on their way, R."""

    @property
    def capacity_tokens(self) -> int:
        """KV that the instance can hold."""

    @property
    def outstanding(self) -> int:
        """Requests that were sent to it and have not ended."""

    @property
    def timing(self) -> TimingModel:
        """Its constants, as they are believed to be."""

    @property
    def link(self) -> LinkModel:
        """Its way in for KV."""

    @property
    def backlog_ns(self) -> int:
        """Time until what is on its way in has arrived."""

    def sequences(self) -> Iterable[Running]:
        """What runs or is on its way in, in no order."""
