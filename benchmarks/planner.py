"""The planner's rules: what one answer of each takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.measures import Row, timed
from kvpool.plan.ports.spines import Coordinator
from kvpool.plan.routing.shares import Member, ShareSettings, shares
from kvpool.plan.tiers.planner import plan_tiers
from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from kvpool.plan.timing.constants import FITTED
from kvpool.sim.streams import Stream

GIB = 1 << 30
MEMBERS = (64, 1000)
SPINES = (8, 16, 64)
LEAVES = 8
FLOWS = 2000
UNDER_WAY = 64
SCENARIOS = 100


def answers() -> Iterator[Row]:
    """Time of one answer of each rule."""
    for count in MEMBERS:
        seconds = timed(partial(shares, _members(count), ShareSettings()))
        yield Row(f"shares of {count:,} members", seconds, f"{1e6 * seconds / count:.2f} us a member")
    for spines in SPINES:
        seconds = timed(partial(_flows, spines)) / FLOWS
        yield Row(f"a spine of {spines} for one flow", seconds, f"{1e6 * seconds:.1f} us")
    seconds = timed(_plans)
    yield Row(f"{SCENARIOS} tier plans", seconds, f"{1000 * seconds / SCENARIOS:.3f} ms a plan")


def _members(count: int) -> list[Member]:
    timings = [constants.timing for constants in FITTED.values()]
    return [
        Member(f"slot-{number}", True, timings[number % len(timings)], number % 10 / 10)
        for number in range(count)
    ]


def _flows(spines: int) -> None:
    """Start flows between random leaves; those that are 64 flows old end."""
    coordinator, stream = Coordinator(LEAVES, spines), Stream(1)
    for number in range(FLOWS):
        source, destination = stream.below(LEAVES), stream.below(LEAVES)
        spine = coordinator.choose(source, destination, stream.below)
        assert spine is not None
        coordinator.started(number, source, destination, spine)
        coordinator.ended(number - UNDER_WAY)


def _plans() -> None:
    """A hundred demands of a stack at 1 : 8 : 64."""
    tiers = (
        Tier("HBM", 100 * GIB),
        Tier("DRAM", 800 * GIB, ("host",)),
        Tier("SSD", 6400 * GIB, ("drives", "host"), write_bytes_per_day=6400 * GIB),
    )
    stack = Stack(tiers, (Link("host", 50 * GIB), Link("drives", 12 * GIB)))
    timing = FITTED["H200", "Qwen3-8B", 1].timing
    for number in range(SCENARIOS):
        demand = Demand(
            GIB,
            100.0 + 10 * number,
            context_tokens=8192,
            new_tokens=512,
            timing=timing,
            ttft_target_ns=2_000_000_000,
        )
        plan_tiers(stack, demand)
