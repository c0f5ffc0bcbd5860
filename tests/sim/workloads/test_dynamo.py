"""Dynamo's forms: sessions, waits, tool times, and prompts told by what each turn adds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.reading import Reading, TraceError
from kvpool.sim.workloads.request import Request
from tests.sim.workloads.made_lines import line

MS = 1_000_000


def row(**fields: object) -> bytes:
    return line(**{"output_length": 5, "hash_ids": [1], **fields})


def requests_of(*lines: bytes) -> tuple[Request, ...]:
    return load(lines, "rows").requests


def test_a_session_goes_on_after_its_delay() -> None:
    first, second = requests_of(
        row(session_id="a", timestamp=1000, hash_ids=[1, 2]),
        row(session_id="a", delay=250, hash_ids=[1, 2, 3]),
    )

    assert (first.prompt_tokens, first.session, first.think_ns) == (1024, 0, -1)
    assert (second.prompt_tokens, second.session, second.think_ns) == (1536, 0, 250 * MS)
    assert second.arrival_ns == 250 * MS


def test_a_row_waits_for_another_and_its_tools() -> None:
    first, second = requests_of(
        row(request_id="r1", session_id="a", timestamp=0),
        row(request_id="r2", session_id="a", wait_for=["r1"], delay=10, tool_wait_ms=990),
    )

    assert first.session == second.session
    assert second.think_ns == 1000 * MS


def test_a_spawned_session_comes_no_earlier_than_what_it_waits_for_and_is_counted() -> None:
    workload = load(
        [
            row(request_id="r1", session_id="parent", timestamp=4000),
            row(request_id="r2", session_id="child", wait_for=["r1"], delay=50),
            row(request_id="r3", session_id="parent", wait_for=["r1", "r2"], tool_wait_ms=7),
        ],
        "rows",
    )

    parent, child, joined = workload.requests
    assert (child.session, child.think_ns, child.arrival_ns) == (1, -1, 50 * MS)
    assert (joined.session, joined.think_ns) == (parent.session, 7 * MS)
    assert joined.arrival_ns == 57 * MS
    assert workload.notes == {"waits_for_other_sessions": 2}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row(request_id="a")], "line 1: `timestamp` is missing, and neither `wait_for`"),
        (
            [row(request_id=1, timestamp=0), row(request_id=1, timestamp=1)],
            "line 2: `request_id` 1 was there",
        ),
        ([row(request_id="a", timestamp=0, wait_for="b")], "line 1: `wait_for` is no list"),
        ([row(session_id=[1], timestamp=0)], "line 1: `session_id` is a list, and must be a text"),
        ([row(session_id="a", timestamp=0, delay=-1)], "line 1: `delay` is -1, and must be a time from 0"),
    ],
)
def test_rows_that_make_no_sense_are_refused(rows: list[bytes], told: str) -> None:
    with pytest.raises(TraceError, match=told):
        load(rows, "rows")


def deltas(rows: list[bytes], block_tokens: int = 4) -> tuple[Request, ...]:
    return load(rows, "rows", "mooncake-delta", Reading(block_tokens=block_tokens)).requests


def test_deltas_add_up_to_whole_prompts() -> None:
    first, second = deltas(
        [
            row(session_id="a", timestamp=0, hash_ids=[10, 11], input_length=8),
            row(session_id="a", delay=5, hash_ids=[12], input_length=4),
        ]
    )

    assert (first.prompt_tokens, len(first.blocks)) == (8, 2)
    assert (second.prompt_tokens, len(second.blocks)) == (12, 3)
    assert second.blocks[:2] == first.blocks


def test_equal_prompts_of_two_sessions_share_their_blocks() -> None:
    first, second, third = deltas(
        [
            row(session_id="a", timestamp=0, hash_ids=[10, 11], input_length=8),
            row(session_id="b", timestamp=1, hash_ids=[10, 11], input_length=7),
            row(session_id="c", timestamp=2, hash_ids=[12, 11], input_length=8),
        ]
    )

    assert second.blocks == first.blocks[:1]
    assert not set(third.blocks) & set(first.blocks)


@given(st.lists(st.integers(1, 15), min_size=1, max_size=8))
def test_a_prompt_has_as_many_whole_blocks_as_fit_wherever_its_turns_end(added: list[int]) -> None:
    rows = [
        row(
            session_id="a",
            timestamp=0,
            input_length=tokens,
            hash_ids=[*range(100 * turn, 100 * turn - (-tokens // 4))],
        )
        for turn, tokens in enumerate(added)
    ]

    requests = deltas(rows)

    for turn, request in enumerate(requests):
        assert request.prompt_tokens == sum(added[: turn + 1])
        assert len(request.blocks) == request.prompt_tokens // 4
        if turn:
            assert request.blocks[: len(requests[turn - 1].blocks)] == requests[turn - 1].blocks
