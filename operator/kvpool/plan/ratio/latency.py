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


class Latencies:
    """Mean latencies of requests that come at random at a mean rate, for split after split.

    Each half hangs on the instances of one role, and many splits have as many of them: it is worked out once.
    """

    def __init__(self, roles: Roles, shapes: Sequence[Shape], requests_per_1000_seconds: int) -> None:
        self._roles = roles
        self._rate = requests_per_1000_seconds / 1000
        self._output = mean_output_tokens(shapes)
        self._context = running_context_tokens(shapes)
        self._service_ns = mean_prefill_ns(roles.prefill, shapes)
        self._variation = _variation(roles, shapes, self._service_ns)
        sent_bytes = round(mean_prompt_tokens(shapes) * roles.kv_bytes_per_token)
        self._transfer_ns = roles.link.transfer_ns(sent_bytes)
        self._ttft_ns: dict[int, float] = {}
        self._tpot_ns: dict[int, float] = {}

    def of(self, split: Split) -> Latency:
        """Return the latencies of one split."""
        if split.prefill not in self._ttft_ns:
            offered = self._rate * self._service_ns / NS_PER_SECOND
            wait_ns = mean_wait(offered, split.prefill, self._variation) * self._service_ns
            self._ttft_ns[split.prefill] = wait_ns + self._service_ns + self._transfer_ns
        if split.decode not in self._tpot_ns:
            rate = self._rate / split.decode
            self._tpot_ns[split.decode] = _step_under(rate, self._roles, self._output, self._context)
        ttft_ns, tpot_ns = self._ttft_ns[split.prefill], self._tpot_ns[split.decode]
        return Latency(ttft_ns, tpot_ns, ttft_ns + self._output * tpot_ns)


def _variation(roles: Roles, shapes: Sequence[Shape], service_ns: float) -> float:
    """Variance of prefill times over their squared mean."""
    squares = sum(
        shape.weight * roles.prefill.prefill_ns(shape.prompt_tokens, shape.hit_tokens) ** 2
        for shape in shapes
    )
    return max(0.0, squares / sum(shape.weight for shape in shapes) / service_ns**2 - 1)


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
