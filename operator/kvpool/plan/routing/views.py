"""What a routing rule may look at: the request, and the load of each instance it may go to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from kvpool.plan.routing.pending import Pending
from kvpool.plan.timing.model import LinkModel, TimingModel


@dataclass(frozen=True, slots=True)
class Objective:
    """What a class of requests was promised, and how much it counts."""

    ttft_ns: int
    tpot_ns: int
    weight: int
    """Percent: 100 for interactive, 50 for batch."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """How much of a prompt's prefix one instance holds, by the tier it lies in. Tokens, each counted once."""

    device_tokens: int = 0
    host_tokens: int = 0
    disk_tokens: int = 0

    @property
    def tokens(self) -> int:
        """The length of the prefix that need not be computed."""
        return self.device_tokens + self.host_tokens + self.disk_tokens


NO_OVERLAP = Overlap()


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, as a router sees it: the prompt is exact, the output is predicted."""

    prompt_tokens: int
    expected_output_tokens: int
    """The mean: for time."""
    bound_output_tokens: int
    """An upper bound with a stated coverage: for reserving KV."""
    objective: Objective
    bytes_per_token: int = 0
    """KV of one token on its way to a decode instance; 0: nothing has to be moved."""
    overlaps: tuple[Overlap, ...] = ()
    """What each instance holds of the prompt's prefix, in the order of the instances; empty: nothing."""

    waited_ns: int = 0
    """Since it arrived: part of its time to the first token."""

    def overlap(self, index: int) -> Overlap:
        """What the instance at that place holds of the prompt's prefix."""
        return self.overlaps[index] if self.overlaps else NO_OVERLAP


class Draws(Protocol):
    """Random numbers, from wherever the caller takes them."""

    def below(self, bound: int) -> int:
        """A whole number in [0, bound), every one equally likely."""

    def uniform(self) -> float:
        """A number in [0, 1)."""


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
    def prefill_tokens(self) -> int:
        """Prompt tokens that were sent to it and are not computed; 0 where an instance only decodes."""

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

    @property
    def pending(self) -> Pending:
        """The same, kept so that sums over it cost no walk: entered when sent, left when ended."""


class PrefillInstance(Protocol):
    """The load of one instance that computes prompts."""

    @property
    def backlog_ns(self) -> int:
        """Time until what was sent to it is computed."""

    @property
    def outstanding(self) -> int:
        """Prompts that were sent to it and are not computed."""

    @property
    def prefill_tokens(self) -> int:
        """Tokens of those prompts that are not computed."""

    @property
    def timing(self) -> TimingModel:
        """Its constants, as they are believed to be."""

    @property
    def link(self) -> LinkModel:
        """Its way in for KV of prefixes that others hold."""
