"""Stacks and demands for the tests of the tier planner."""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from kvpool.plan.timing.constants import FITTED

GB: Final = 10**9
QWEN: Final = FITTED["H200", "Qwen3-8B", 1].timing
KAPPA: Final = 147_456

RATIO: Final = Stack(
    (
        Tier("HBM", 100 * GB, price=187.5 * 100),
        Tier("DRAM", 800 * GB, ("pcie",), price=3.5 * 800),
        Tier("SSD", 6_400 * GB, ("ssd", "pcie"), price=0.08 * 6_400),
    ),
    (Link("pcie", 50 * GB), Link("ssd", 12 * GB)),
)
"""1 : 8 : 64."""


def demand(context: int = 16_000, returns: float = 1e9, **more: object) -> Demand:
    """Sessions of that many tokens of Qwen3-8B; by default they hardly ever return."""
    return Demand(context * KAPPA, returns, context, 500, 500 * KAPPA, QWEN, **more)  # type: ignore[arg-type]  # keywords of Demand


@st.composite
def stacks(draw: st.DrawFn) -> Stack:
    """Two to four tiers behind one to three links."""
    links = tuple(
        Link(f"link{index}", draw(st.integers(10**9, 10**11)), draw(st.integers(0, 10**7)))
        for index in range(draw(st.integers(1, 3)))
    )
    names = [link.name for link in links]
    tiers = tuple(
        Tier(
            f"tier{index}",
            draw(st.integers(0, 10**13)),
            tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))),
            price=draw(st.floats(0, 1e5)),
            write_bytes_per_day=draw(st.none() | st.integers(0, 10**16)),
            borrowed=draw(st.booleans()),
        )
        for index in range(1, draw(st.integers(2, 4)))
    )
    first = Tier("first", draw(st.integers(0, 10**12)), price=draw(st.floats(1, 1e6)))
    return Stack((first, *tiers), links, exclusive=draw(st.booleans()))


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    """Sessions of 1 MB to 100 GB that return after a second to a day."""
    context = draw(st.integers(0, 200_000))
    return Demand(
        session_bytes=draw(st.integers(10**6, 10**11)),
        return_seconds=draw(st.floats(1, 86_400)),
        context_tokens=context,
        new_tokens=draw(st.integers(0, 10_000)),
        new_bytes=draw(st.integers(0, 10**9)),
        timing=draw(st.sampled_from([None, QWEN])),
        ttft_target_ns=draw(st.none() | st.integers(10**6, 10**11)),
        utilisation=draw(st.floats(0.1, 1)),
    )
