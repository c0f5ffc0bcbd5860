"""The mix of short chats, long prompts and long answers, in bursts, that routing rules are compared on.

Shares and medians are those of kvpool's own prototypes for re-running "Calibrate, Then Route" (arXiv
2609.16206, read second hand: no workload is quoted). The spread of the lengths is an assumption, and so a
parameter.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.bounds import Factor, Rate, Seconds, Share, Sigma, Span
from kvpool.sim.workloads.generators.provenance import CHUNK_TOKENS, held
from kvpool.sim.workloads.reading import MOST_REQUESTS
from kvpool.sim.workloads.request import BATCH, INTERACTIVE, Request, Workload


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of request: medians of its lengths, and where they are cut."""

    name: str
    share: float
    prompt_tokens: int
    output_tokens: int
    most_prompt_tokens: int
    most_output_tokens: int


PARTS: Final = (
    Part("short", 0.55, 350, 180, 8000, 3000),
    Part("long-prompt", 0.25, 3000, 90, 8000, 3000),
    Part("long-answer", 0.20, 400, 900, 8000, 3000),
)


@dataclass(frozen=True, slots=True)
class Mix:
    """Parameters of the mix."""

    seconds: Span
    rate_per_second: Rate
    """Mean arrivals over a long time, bursts included."""
    sigma: Sigma = 0.6
    """Spread of the logarithm of both lengths; 0: every request of a part is its median."""
    equal: bool = False
    """Every request has the mean lengths of the mix: nothing to be clever about."""
    batch_share: Share = 0.3
    """Share of requests that are not waited for."""
    burst_factor: Factor = 3.0
    """Rate inside a burst against outside."""
    burst_seconds: Span = 6.0
    """Mean length of a burst."""
    calm_seconds: Seconds = 18.0
    """Mean time between two."""

    def __post_init__(self) -> None:
        if self.seconds * self.rate_per_second > MOST_REQUESTS:
            raise ValueError(
                f"{self.rate_per_second} requests a second for {self.seconds} s are more than the "
                f"{MOST_REQUESTS} that fit into memory: ask for less"
            )
        if self.seconds > MOST_REQUESTS * (self.burst_seconds + self.calm_seconds):
            raise ValueError(
                f"bursts of {self.burst_seconds} s that are {self.calm_seconds} s apart are more than "
                f"{MOST_REQUESTS} in {self.seconds} s: make them longer"
            )


def mix(parameters: Mix, seed: int) -> Workload:
    """Make the requests. Arrivals are Poisson at a rate that jumps between two levels (on and off).

    Each part of the mix is a client of its own, for who predicts lengths by client.
    """
    requests = held("mix", _requests(parameters, Stream(seed).split("mix")))
    source = f"mix {parameters.rate_per_second:g}/s for {parameters.seconds:g} s, seed {seed}"
    text = repr(("mix", sorted(asdict(parameters).items()), seed))
    return Workload(tuple(requests), CHUNK_TOKENS, source, hashlib.sha256(text.encode()).hexdigest())


def _requests(parameters: Mix, root: Stream) -> Iterator[Request]:
    lengths, classes = root.split("lengths"), root.split("classes")
    for arrival_ns in _arrivals(parameters, root.split("switches"), root.split("gaps")):
        client, prompt, output = _request(parameters, lengths)
        slo_class = BATCH if classes.uniform() < parameters.batch_share else INTERACTIVE
        yield Request(arrival_ns, prompt, output, slo_class=slo_class, client=client)


def _arrivals(parameters: Mix, switches: Stream, gaps: Stream) -> Iterator[int]:
    """Yield times in nanoseconds. When bursts begin and end does not depend on the rate."""
    burst, calm = parameters.burst_seconds, parameters.calm_seconds
    level = (burst * parameters.burst_factor + calm) / (burst + calm)
    calm_rate = parameters.rate_per_second / level
    begin, bursting = 0.0, False
    while begin < parameters.seconds:
        end = begin + switches.exponential(burst if bursting else calm)
        rate = calm_rate * (parameters.burst_factor if bursting else 1.0)
        now = begin + gaps.exponential(1 / rate)
        while now < min(end, parameters.seconds):
            yield round(now * NS_PER_SECOND)
            now += gaps.exponential(1 / rate)
        begin, bursting = end, not bursting


def _request(parameters: Mix, stream: Stream) -> tuple[str, int, int]:
    if parameters.equal:
        prompt = sum(part.share * part.prompt_tokens for part in PARTS)
        output = sum(part.share * part.output_tokens for part in PARTS)
        return "", round(prompt), round(output)
    left = stream.uniform()
    part = PARTS[-1]
    for candidate in PARTS:
        left -= candidate.share
        if left < 0:
            part = candidate
            break
    prompt_tokens = round(stream.lognormal(part.prompt_tokens, parameters.sigma))
    output_tokens = round(stream.lognormal(part.output_tokens, parameters.sigma))
    return (
        part.name,
        min(part.most_prompt_tokens, max(1, prompt_tokens)),
        min(part.most_output_tokens, max(1, output_tokens)),
    )
