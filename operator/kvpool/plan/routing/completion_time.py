"""Routing by the time that a request adds, to itself and to everyone it runs beside.

For request q (prompt L, expected output o, bound b, weight w) on instance d (batch B, K tokens, R promised):

    need  = L + b
    x     = backlog + transfer(L - hit)                                    exact prompt length
    wait  = 0 while R + need <= theta * cap, else steps until predicted ends free the overflow, x step(B, K)
    s0    = step(B, K) ;  s1 = step(B + 1, K + L + o / 2)                   predicted output
    own   = x + wait + o * s1
    ext   = (s1 - s0) * sum_j w_j * min(rem_j, o)                           what the others lose
    pen   = P1 * w * [(x + wait) / (o - 1) + s1 > TPOT] + P1 * w * [waited + x + wait + s1 > TTFT]
            + P2 * sum_j w_j * [s0 <= TPOT_j < s1]                          class of service
    score = w * own + ext + pen                                             the smallest is chosen

The four features (exact prompt length, predicted output, KV pressure, class of service) are those that
Tumkur et al. name ("Calibrate, Then Route", arXiv 2609.16206, read second hand); how they are put together is
kvpool's own derivation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.routing.views import Ask, Instance


@dataclass(frozen=True, slots=True)
class CompletionTimeSettings:
    """What a broken promise costs, and how full an instance may be planned."""

    own_break_ns: int = 5_000_000_000
    """P1: for breaking the newcomer's promise, per full weight."""
    others_break_ns: int = 500_000_000
    """P2: for breaking the promise of one that runs, per full weight."""
    fill_percent: int = 100
    """theta: the share of the capacity that may be promised before a request has to wait."""


@dataclass(frozen=True, slots=True)
class Increment:
    """What one request would add on one instance, part by part. Nanoseconds, and percent x nanoseconds."""

    arrive_ns: int
    """Until its KV is there."""
    wait_ns: int
    """Until there is room."""
    step_before_ns: int
    step_after_ns: int
    own_ns: int
    """Until its last token."""
    others_percent_ns: int
    penalty_percent_ns: int
    score_percent_ns: int


def increment(ask: Ask, place: int, instance: Instance, settings: CompletionTimeSettings) -> Increment:
    """Work out what `ask` would add on `instance`, which stands at `place` among those it may go to."""
    objective = ask.objective
    output = max(1, ask.expected_output_tokens)
    fresh = max(0, ask.prompt_tokens - ask.overlap(place).tokens)
    arrive = instance.backlog_ns + instance.link.transfer_ns(fresh * ask.bytes_per_token)
    running, kv_tokens, pending = instance.running, instance.kv_tokens, instance.pending
    before = instance.timing.step_ns(running, kv_tokens)
    after = instance.timing.step_ns(running + 1, kv_tokens + ask.prompt_tokens + output // 2)
    wait = waiting_steps(ask, instance, settings.fill_percent) * before
    own = arrive + wait + output * after
    others = max(0, after - before) * pending.delayed_tokens(output)
    first_token = arrive + wait + after
    broken = int((arrive + wait) // max(1, output - 1) + after > objective.tpot_ns)
    broken += int(ask.waited_ns + first_token > objective.ttft_ns)
    penalty = settings.own_break_ns * objective.weight * broken
    penalty += settings.others_break_ns * pending.broken_weight(before, after)
    score = objective.weight * own + others + penalty
    return Increment(arrive, wait, before, after, own, others, penalty, score)


def waiting_steps(ask: Ask, instance: Instance, fill_percent: int) -> int:
    """Steps until predicted ends have freed room for the request; 0 when there is room now."""
    need = ask.prompt_tokens + ask.bound_output_tokens
    overflow = instance.reserved_tokens + need - fill_percent * instance.capacity_tokens // 100
    return instance.pending.freed_after_tokens(overflow)


class CompletionTime:
    """The instance where a request adds the least; of equals the one with fewest outstanding, then the first.

    A choice costs a few binary searches for each instance, however many sequences run.
    """

    def __init__(self, settings: CompletionTimeSettings | None = None) -> None:
        self._settings = settings or CompletionTimeSettings()

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """The one with the smallest score."""
        return min(
            range(len(instances)),
            key=lambda place: (
                increment(ask, place, instances[place], self._settings).score_percent_ns,
                instances[place].outstanding,
                place,
            ),
        )
