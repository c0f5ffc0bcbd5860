"""Agents that go back to earlier turns."""

from itertools import pairwise

import pytest

from kvpool.sim.workloads.generators.branching import Branching, branching
from kvpool.sim.workloads.request import Request


def by_session(parameters: Branching, seed: int = 1) -> list[list[Request]]:
    sessions: dict[int, list[Request]] = {}
    for request in branching(parameters, seed).requests:
        sessions.setdefault(request.session, []).append(request)
    return list(sessions.values())


def revisits(parameters: Branching) -> float:
    """Share of turns that do not continue the one before."""
    pairs = [pair for turns in by_session(parameters) for pair in pairwise(turns)]
    return sum(after.blocks[: len(before.blocks)] != before.blocks for before, after in pairs) / len(pairs)


def test_without_revisits_every_turn_continues_the_last() -> None:
    assert revisits(Branching(sessions=20, revisit=0.0)) == 0


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_as_many_turns_go_back_as_asked(share: float) -> None:
    # Going back to the last turn is no revisit, and the first turns have nothing to go back to.
    assert revisits(Branching(sessions=200, revisit=share)) == pytest.approx(share * 27 / 29, rel=0.15)


def test_sessions_share_the_tools_of_their_group_and_nothing_else() -> None:
    parameters = Branching(sessions=16, turns=5)
    sessions = by_session(parameters)

    for one in sessions:
        for other in sessions:
            shared = set(one[-1].blocks) & set(other[0].blocks)
            if one[0].session == other[0].session:
                continue
            same_group = one[0].client == other[0].client
            assert len(shared) == (parameters.tool_chunks if same_group else 0)


def test_turns_wait_for_the_one_before_and_the_first_for_none() -> None:
    for turns in by_session(Branching(sessions=5)):
        assert len(turns) == 30
        assert turns[0].think_ns == -1
        assert all(turn.think_ns >= 0 for turn in turns[1:])
        assert all(turn.prompt_tokens == 512 * len(turn.blocks) for turn in turns)


def test_a_session_is_the_same_whatever_others_there_are() -> None:
    first, more = (
        {
            turns[0].session: [turn.prompt_tokens for turn in turns]
            for turns in by_session(Branching(sessions=count))
        }
        for count in (3, 9)
    )

    assert all(more[session] == turns for session, turns in first.items())
