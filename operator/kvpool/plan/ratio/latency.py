"""Mean latencies of a split under a given load: why another objective picks another ratio.

Prefill: M/G/n wait by Erlang's C formula with the correction of Allen and Cunneen. Decode: the batch B at
which an instance finishes as many sequences as come, `B = r * o * step(B, B * context)`, solved for B.
Source of the second: kvpool's own (Little's law on one decode instance).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from kvpool.plan.ratio.demand import Shape, mean_output_tokens, mean_prompt_tokens, running_context_tokens
from kvpool.plan.ratio.rates import Roles, mean_prefill_ns
from kvpool.plan.ratio.split import Split
from kvpool.plan.timing.model import NS_PER_SECOND


@dataclass(frozen=True, slots=True)
class Latency:
    """Means, in nanoseconds; infinite where requests come faster than they can be served."""

    ttft_ns: float
    tpot_ns: float
    end_to_end_ns: float


def latency(roles: Roles, shapes: Sequence[Shape], split: Split, requests_per_1000_seconds: int) -> Latency:
    """Mean latencies of requests that come at random at a mean rate."""
    rate = requests_per_1000_seconds / 1000
    service_ns = mean_prefill_ns(roles.prefill, shapes)
    weights = sum(shape.weight for shape in shapes)
    squares = (
        sum(
            shape.weight * roles.prefill.prefill_ns(shape.prompt_tokens, shape.hit_tokens) ** 2
            for shape in shapes
        )
        / weights
    )
    variation = max(0.0, squares / service_ns**2 - 1)
    wait_ns = mean_wait(rate * service_ns / NS_PER_SECOND, split.prefill, variation) * service_ns
    transfer_ns = roles.link.transfer_ns(round(mean_prompt_tokens(shapes) * roles.kv_bytes_per_token))
    ttft_ns = wait_ns + service_ns + transfer_ns
    output = mean_output_tokens(shapes)
    tpot_ns = _step_under(rate / split.decode, roles, output, running_context_tokens(shapes))
    return Latency(ttft_ns, tpot_ns, ttft_ns + output * tpot_ns)


def mean_wait(offered: float, servers: int, variation: float) -> float:
    """Mean wait in multiples of the mean service time, for `offered` busy servers on average.

    `variation`: variance of the service time over its squared mean. 1: M/M/n, exact; 0 on one server: M/D/1,
    exact; otherwise an approximation.
    """
    if offered >= servers:
        return inf
    term = total = 1.0
    for number in range(1, servers):
        term *= offered / number
        total += term
    last = term * offered / servers * servers / (servers - offered)
    return last / (total + last) / (servers - offered) * (1 + variation) / 2


def _step_under(rate: float, roles: Roles, output: float, context: int) -> float:
    """Step time of a decode instance that finishes `rate` sequences a second. Nanoseconds."""
    timing = roles.decode
    steps = rate * output / NS_PER_SECOND
    grows = timing.step_sequence_ns + timing.step_token_ns * context
    if steps * grows >= 1:
        return inf
    batch = max(1.0, steps * timing.step_base_ns / (1 - steps * grows))
    if batch * context > roles.decode_capacity_tokens:
        return inf
    return timing.step_base_ns + grows * batch
