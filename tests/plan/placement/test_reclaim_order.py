"""What is given up is at each moment what is worth least: held against scoring everything anew each time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.plan.placement.worth import Branch, Drop, Sizes, reclaim, score
from kvpool.plan.timing.model import TimingModel

SIZES = Sizes(token_bytes=100, checkpoint_bytes=70_000)
TIMING = TimingModel(50_000, 1_000, 0.5, 0, 0, 0)


class Plain:
    """One branch; its figures are worked out from scratch whenever they are asked for."""

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.marks = list(branch.checkpoints)
        self.kv_tokens = branch.kv_tokens

    def worth(self, mark: int) -> float:
        older = max((one for one in self.marks if one < mark), default=self.branch.start)
        newer = [one for one in self.marks if one > mark]
        until = min(newer, default=self.branch.kv_tokens)
        chance = self.branch.revisit * (until - mark) / max(1, self.branch.kv_tokens)
        held = SIZES.checkpoint_bytes
        if not newer:
            chance += 1 - self.branch.revisit
            held += 100 * max(0, self.kv_tokens - max(older, self.branch.floor))
        return score(self.branch.reuse * chance, TIMING.prefill_ns(mark, older), held)

    def cut(self) -> list[Drop]:
        usable = max(*self.marks, self.branch.start, self.branch.floor, 0)
        freed = self.kv_tokens - usable
        if freed <= 0:
            return []
        self.kv_tokens = usable
        return [Drop(self.branch.name, usable, False, 100 * freed)]


def plainly(branches: list[Branch], wanted_bytes: int) -> list[Drop]:
    chains = [Plain(branch) for branch in branches]
    drops: list[Drop] = []

    def enough() -> bool:
        return sum(drop.freed_bytes for drop in drops) >= wanted_bytes

    for chain in chains:
        if not enough():
            drops += chain.cut()
    while not enough() and any(chain.marks for chain in chains):
        marks = [
            (chain.worth(mark), place, mark) for place, chain in enumerate(chains) for mark in chain.marks
        ]
        _, place, mark = min(marks)
        chains[place].marks.remove(mark)
        drops.append(Drop(branches[place].name, mark, True, SIZES.checkpoint_bytes))
        if not enough():
            drops += chains[place].cut()
    return drops


@st.composite
def some_branches(draw: st.DrawFn) -> list[Branch]:
    found = []
    for name in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, 10)) * 100
        marks = sorted(draw(st.sets(st.integers(1, 40), max_size=6)))
        tokens = [start + 100 * mark for mark in marks]
        kv_tokens = max(tokens, default=start) + draw(st.integers(0, 5)) * 100
        found.append(
            Branch(
                name,
                draw(st.integers(1, 16)) / 16,
                tuple(tokens),
                kv_tokens,
                revisit=draw(st.sampled_from([0.0, 0.125, 0.5, 1.0])),
                start=start,
                floor=draw(st.integers(0, kv_tokens)),
            )
        )
    return found


@given(some_branches(), st.integers(0, 3_000_000))
def test_the_least_worth_goes_first_as_if_all_were_scored_anew(branches: list[Branch], wanted: int) -> None:
    assert reclaim(branches, SIZES, TIMING, wanted) == plainly(branches, wanted)


def test_a_checkpoint_that_became_the_newest_is_judged_with_the_kv_that_goes_with_it() -> None:
    # Turns go back only, so the newest goes first. What is then the newest takes its KV along: at 200 tokens
    # it is worth less than the one at 100, though it was worth as much before.
    branch = Branch(7, 1.0, (100, 200, 300), 300, revisit=1.0)
    drops = reclaim([branch], SIZES, TIMING, SIZES.checkpoint_bytes + 100 * SIZES.token_bytes + 1)
    assert [(drop.position, drop.is_checkpoint) for drop in drops] == [(300, True), (200, False), (200, True)]


def test_a_score_is_the_time_saved_for_each_byte_as_likely_as_it_is_saved() -> None:
    assert score(0.5, 100, 20) == pytest.approx(2.5)
