"""What became of one request, and of a whole run."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvpool.plan.routing.views import Objective
from kvpool.sim.prefixes.tier import Tier


@dataclass(frozen=True, slots=True)
class Outcome:
    """One request that was served, or refused. Times are from the start of the run."""

    number: int
    slo_class: str
    arrival_ns: int
    first_ns: int
    """First token out; -1 when refused."""
    end_ns: int
    """Last token out; -1 when refused."""
    prompt_tokens: int
    output_tokens: int
    hit_tokens: int
    loaded_tokens: Mapping[Tier, int]
    """Of the hit, what was brought up from lower tiers."""
    deepest: Tier
    recomputed_tokens: int
    """After a preemption or a failure."""
    preempted: int
    refused: str = ""
    """Why it was not served; empty: it was."""
    needed_tokens: int = 0
    """KV of a request that is larger than the memory of an instance; 0: it is not."""
    room_tokens: int = 0
    """That memory."""

    @property
    def ttft_ns(self) -> int:
        """From arrival to the first token."""
        return self.first_ns - self.arrival_ns

    @property
    def e2e_ns(self) -> int:
        """From arrival to the last token."""
        return self.end_ns - self.arrival_ns

    @property
    def tpot_ns(self) -> int:
        """Mean time between tokens after the first; 0 for a single token."""
        return (self.end_ns - self.first_ns) // (self.output_tokens - 1) if self.output_tokens > 1 else 0

    def keeps(self, promise: Objective) -> bool:
        """Whether it was served, in time for the first token and for each one after it."""
        in_time = self.ttft_ns <= promise.ttft_ns and self.tpot_ns <= promise.tpot_ns
        return in_time and not self.refused
