"""The mix of short chats, long prompts and long answers, in bursts, that routing rules are compared on.

Shares and medians are those of kvpool's own prototypes for re-running "Calibrate, Then Route" (arXiv
2609.16206, read second hand: no workload is quoted). The spread of the lengths is an assumption, and so a
parameter.
"""

import hashlib
from dataclasses import asdict, dataclass
from typing import Final

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.streams import Stream
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

    seconds: float
    rate_per_second: float
    """Mean arrivals over a long time, bursts included."""
    sigma: float = 0.6
    """Spread of the logarithm of both lengths; 0: every request of a part is its median."""
    equal: bool = False
    """Every request has the mean lengths of the mix: nothing to be clever about."""
    batch_share: float = 0.3
    """Share of requests that are not waited for."""
    burst_factor: float = 3.0
    """Rate inside a burst against outside."""
    burst_seconds: float = 6.0
    """Mean length of a burst."""
    calm_seconds: float = 18.0
    """Mean time between two."""


def mix(parameters: Mix, seed: int) -> Workload:
    """Make the requests. Arrivals are Poisson at a rate that jumps between two levels (on and off).

    Each part of the mix is a client of its own, for who predicts lengths by client.
    """
    root = Stream(seed).split("mix")
    lengths, classes = root.split("lengths"), root.split("classes")
    requests = []
    for arrival_ns in _arrivals(parameters, root.split("switches"), root.split("gaps")):
        client, prompt, output = _request(parameters, lengths)
        slo_class = BATCH if classes.uniform() < parameters.batch_share else INTERACTIVE
        requests.append(Request(arrival_ns, prompt, output, slo_class=slo_class, client=client))
    source = f"mix {parameters.rate_per_second:g}/s for {parameters.seconds:g} s, seed {seed}"
    text = repr(("mix", sorted(asdict(parameters).items()), seed))
    return Workload(tuple(requests), 512, source, hashlib.sha256(text.encode()).hexdigest())


def _arrivals(parameters: Mix, switches: Stream, gaps: Stream) -> list[int]:
    """Times in nanoseconds. When bursts begin and end does not depend on the rate."""
    burst, calm = parameters.burst_seconds, parameters.calm_seconds
    level = (burst * parameters.burst_factor + calm) / (burst + calm)
    calm_rate = parameters.rate_per_second / level
    times: list[int] = []
    begin, bursting = 0.0, False
    while begin < parameters.seconds:
        end = begin + switches.exponential(burst if bursting else calm)
        rate = calm_rate * (parameters.burst_factor if bursting else 1.0)
        now = begin + gaps.exponential(1 / rate)
        while now < min(end, parameters.seconds):
            times.append(round(now * NS_PER_SECOND))
            now += gaps.exponential(1 / rate)
        begin, bursting = end, not bursting
    return times


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
