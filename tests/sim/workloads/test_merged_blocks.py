"""Merging small blocks keeps what is shared, and nothing more."""

from hypothesis import given
from hypothesis import strategies as st

from kvpool.sim.workloads.merged_blocks import NO_BRANCH, Numbers, SessionBlocks, common, covered, expanded

PROMPTS = st.lists(st.lists(st.integers(0, 3), max_size=24), min_size=2, max_size=8)
RANGES = st.lists(st.tuples(st.integers(-5, 60), st.integers(0, 9)), max_size=6).map(
    lambda parts: tuple((first, first + more) for first, more in parts)
)


def ranges_of(ids: list[int]) -> tuple[tuple[int, int], ...]:
    return tuple((each, each) for each in ids)


@given(PROMPTS, st.sampled_from([1, 2, 4, 8]))
def test_two_prompts_share_as_many_merged_blocks_as_fit_into_what_they_share(
    prompts: list[list[int]], group: int
) -> None:
    session = SessionBlocks(Numbers(), group, 64 * group)
    branch = session.begin(ranges_of(prompts[0]), 0, 0)
    merged = [branch.blocks]
    for ids in prompts[1:]:
        branch = session.follow(ranges_of(ids), branch)
        merged.append(branch.blocks)

    for ids, blocks in zip(prompts, merged, strict=True):
        assert len(blocks) == len(ids) // group
        for other, other_blocks in zip(prompts, merged, strict=True):
            assert (
                common(ranges_of(list(blocks)), ranges_of(list(other_blocks))) == _shared(ids, other) // group
            )


def _shared(one: list[int], other: list[int]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


@given(PROMPTS)
def test_which_prompt_came_before_only_saves_time(prompts: list[list[int]]) -> None:
    one, other = (SessionBlocks(Numbers(), 2, 128) for _ in range(2))
    branch = NO_BRANCH
    for ids in prompts:
        branch = one.follow(ranges_of(ids), branch)
        assert branch.blocks == other.follow(ranges_of(ids), NO_BRANCH).blocks


@given(RANGES, RANGES, st.integers(0, 30))
def test_ranges_are_their_ids(
    one: tuple[tuple[int, int], ...], other: tuple[tuple[int, int], ...], start: int
) -> None:
    ids = [each for first, last in one for each in range(first, last + 1)]

    assert covered(one) == len(ids)
    assert expanded(one, start) == ids[start:]
    assert common(one, other) <= _shared(ids, expanded(other, 0))
