"""Requests that share nothing, with lengths and arrivals of one's choice: the ground to compare others with.

Poisson arrivals are those of M/G/c queues (Kendall 1953); bursts are a Poisson process whose rate jumps
between two levels; even arrivals have no chance in them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.provenance import made
from kvpool.sim.workloads.reading import MOST_REQUESTS
from kvpool.sim.workloads.request import Request, Workload


@dataclass(frozen=True, slots=True)
class Poisson:
    """Independent arrivals."""

    rate_per_second: float


@dataclass(frozen=True, slots=True)
class Even:
    """Arrivals at equal distances, the first at 0."""

    rate_per_second: float


@dataclass(frozen=True, slots=True)
class Bursts:
    """Independent arrivals at a rate that is `factor` times higher in bursts than between them."""

    rate_per_second: float
    """Mean over a long time, bursts included."""
    factor: float = 3.0
    burst_seconds: float = 6.0
    """Mean length of a burst."""
    calm_seconds: float = 18.0
    """Mean time between two."""


Arrivals = Poisson | Even | Bursts


@dataclass(frozen=True, slots=True)
class Fixed:
    """All requests alike."""

    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Lengths whose logarithms are normal, at least 1 and cut at the most."""

    prompt_tokens: int
    """Median."""
    output_tokens: int
    """Median."""
    prompt_sigma: float = 1.0
    output_sigma: float = 1.0
    most_prompt_tokens: int = 128_000
    most_output_tokens: int = 8_192


@dataclass(frozen=True, slots=True)
class Drawn:
    """Lengths drawn, in pairs, from those of another workload."""

    source: Workload


Lengths = Fixed | Lognormal | Drawn


def independent(arrivals: Arrivals, lengths: Lengths, seconds: float, seed: int) -> Workload:
    """Make the requests that arrive within `seconds`. ValueError if rate and time make no workload."""
    expected = arrivals.rate_per_second * seconds
    if not 0 < expected <= MOST_REQUESTS:
        raise ValueError(
            f"{arrivals.rate_per_second} requests a second for {seconds} s are about {expected:.0f}, "
            f"and must be 1 to {MOST_REQUESTS} requests"
        )
    root = Stream(seed).split("independent")
    times = _times(arrivals, root.split("arrivals"), root.split("switches"))
    draw = _Draw(lengths, root.split("lengths"))
    requests = (
        Request(round(now * NS_PER_SECOND), *draw.pair())
        for now in takewhile(lambda now: now < seconds, times)
    )
    told = f"drawn from {lengths.source.checksum}" if isinstance(lengths, Drawn) else repr(lengths)
    parameters = {"arrivals": repr(arrivals), "lengths": told, "seconds": seconds}
    return made("independent", parameters, seed, requests)


def _times(arrivals: Arrivals, gaps: Stream, switches: Stream) -> Iterator[float]:
    """Yield arrivals in seconds, without end."""
    if isinstance(arrivals, Even):
        count = 0
        while True:
            yield count / arrivals.rate_per_second
            count += 1
    if isinstance(arrivals, Bursts):
        yield from _bursts(arrivals, gaps, switches)
        return
    now = gaps.exponential(1 / arrivals.rate_per_second)
    while True:
        yield now
        now += gaps.exponential(1 / arrivals.rate_per_second)


def _bursts(arrivals: Bursts, gaps: Stream, switches: Stream) -> Iterator[float]:
    burst, calm = arrivals.burst_seconds, arrivals.calm_seconds
    calm_rate = arrivals.rate_per_second * (burst + calm) / (burst * arrivals.factor + calm)
    begin, bursting = 0.0, False
    while True:
        end = begin + switches.exponential(burst if bursting else calm)
        rate = calm_rate * arrivals.factor if bursting else calm_rate
        now = begin + gaps.exponential(1 / rate)
        while now < end:
            yield now
            now += gaps.exponential(1 / rate)
        begin, bursting = end, not bursting


class _Draw:
    """Draws pairs of prompt and output tokens."""

    def __init__(self, lengths: Lengths, stream: Stream) -> None:
        self._lengths = lengths
        self._stream = stream
        self._pairs: Sequence[tuple[int, int]] = (
            [(each.prompt_tokens, each.output_tokens) for each in lengths.source.requests]
            if isinstance(lengths, Drawn)
            else ()
        )

    def pair(self) -> tuple[int, int]:
        lengths, stream = self._lengths, self._stream
        if isinstance(lengths, Drawn):
            return self._pairs[stream.below(len(self._pairs))]
        if isinstance(lengths, Fixed):
            return lengths.prompt_tokens, lengths.output_tokens
        prompt = round(stream.lognormal(lengths.prompt_tokens, lengths.prompt_sigma))
        output = round(stream.lognormal(lengths.output_tokens, lengths.output_sigma))
        return (
            max(1, min(prompt, lengths.most_prompt_tokens)),
            max(1, min(output, lengths.most_output_tokens)),
        )
