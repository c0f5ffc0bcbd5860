"""WEKA's form: sessions, their think times, subagents, and what they share."""

import gzip
import json

import pytest

from kvpool.sim.workloads import weka
from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.reading import Reading, TraceError
from kvpool.sim.workloads.request import Request
from tests.sim.workloads.made_lines import PUBLIC_TRACES, session, turn

SESSIONS = PUBLIC_TRACES / "weka_claude_code_710.jsonl.gz"
RAW = "weka_sample_raw_trace_0012.json.gz"
SECOND = 1_000_000_000


def requests_of(*lines: bytes, merged: int | None = 1) -> tuple[Request, ...]:
    return load(lines, "sessions", reading=Reading(merged_blocks=merged)).requests


def test_a_turn_waits_its_think_time_after_the_one_before() -> None:
    first, second = requests_of(
        session(turn(0, [1, 2], 128), turn(30, [1, 2, 3], 192, think_time=28.0)),
    )

    assert (first.session, first.think_ns, first.arrival_ns) == (0, -1, 0)
    assert (second.session, second.think_ns, second.arrival_ns) == (0, 28 * SECOND, 30 * SECOND)
    assert second.blocks[:2] == first.blocks
    assert (first.prompt_tokens, first.output_tokens, first.client) == (128, 10, "m")


def test_a_missing_think_time_is_taken_from_the_clock() -> None:
    workload = load([session(turn(0, [1], 64), turn(30, [1], 64))], "sessions")

    assert workload.requests[1].think_ns == 28 * SECOND
    assert workload.notes["think_time_by_the_clock"] == 2


def test_the_think_time_of_a_request_without_tokens_goes_to_the_next() -> None:
    turns = [
        turn(0, [1], 64, think_time=0),
        turn(9, [], 0, think_time=3.0),
        turn(20, [1], 64, think_time=4.0),
    ]

    workload = load([session(*turns)], "sessions")

    assert [request.think_ns for request in workload.requests] == [-1, 7 * SECOND]
    assert workload.notes == {"zero_tokens": 1}


def test_ids_written_one_by_one_and_as_ranges_are_the_same() -> None:
    one_by_one = session(turn(0, [*range(1, 21), 30, 31, 40], 23 * 64))
    as_ranges = session(turn(0, [[1, 20], [30, 31], [40, 40]], 23 * 64))

    for merged in (1, 8):
        assert requests_of(one_by_one, merged=merged) == requests_of(as_ranges, merged=merged)


def test_small_blocks_are_merged_and_only_whole_ones_count() -> None:
    line = session(turn(0, [[1, 20]], 20 * 64 + 5), turn(5, [[1, 16], [30, 40]], 27 * 64, think_time=1))

    first, second = requests_of(line, merged=8)

    assert (len(first.blocks), len(second.blocks)) == (2, 3)
    assert second.blocks[:2] == first.blocks


def test_a_block_after_another_prefix_is_another_block() -> None:
    line = session(
        turn(0, [[1, 16]], 16 * 64),
        turn(5, [[101, 108], [9, 16]], 16 * 64, think_time=1),
        turn(9, [[1, 16]], 1024),
    )

    first, second, third = requests_of(line, merged=8)

    assert not set(first.blocks) & set(second.blocks)
    assert third.blocks == first.blocks


def test_ids_of_two_sessions_are_not_the_same_but_for_their_tools_and_instructions() -> None:
    shared = {"tool_tokens": 640, "system_tokens": 640}
    one = session(turn(0, [[1, 40]], 40 * 64), **shared)
    other = session(turn(0, [[1, 40]], 40 * 64), **shared)
    stranger = session(turn(0, [[1, 40]], 40 * 64), tool_tokens=640, system_tokens=0)

    first, second, third = (request.blocks for request in requests_of(one, other, stranger, merged=8))

    # 1,280 tokens are two blocks of 512 and a part; the tools alone are one block and a part.
    assert [a == b for a, b in zip(first, second, strict=True)] == [True, True, False, False, False]
    assert [a == b for a, b in zip(first, third, strict=True)] == [True, False, False, False, False]


def test_a_subagent_is_a_session_that_starts_when_it_started() -> None:
    subagent = {
        "type": "subagent",
        "t": 60.0,
        "duration_ms": 50_000,
        "tool_tokens": 0,
        "system_tokens": 0,
        "requests": [turn(0, [70, 71], 128), turn(5, [70, 71, 72], 192, think_time=3.0)],
    }
    line = session(turn(0, [1, 2], 128), subagent, turn(62, [1, 2, 3], 192, think_time=60.0))

    own, child, child_again, own_again = requests_of(line)

    assert (child.session, child.arrival_ns, child.think_ns) == (1, 10 * SECOND, -1)
    assert (child_again.session, child_again.arrival_ns, child_again.think_ns) == (1, 15 * SECOND, 3 * SECOND)
    assert (own.session, own_again.session, own_again.think_ns) == (0, 0, 60 * SECOND)


def test_sessions_start_one_after_another() -> None:
    lines = [session(turn(0, [1], 64)) for _ in range(3)]

    workload = load(lines, "sessions", reading=Reading(session_gap_ns=5 * SECOND))

    assert [request.arrival_ns for request in workload.requests] == [0, 5 * SECOND, 10 * SECOND]
    assert [request.session for request in workload.requests] == [0, 1, 2]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (session(turn(0, [[5, 3]], 64)), r"`requests\[0\]`: `hash_ids` holds the range \[5, 3\]"),
        (session(turn(9, [1], 64), turn(3, [1], 64)), r"`requests\[1\]`: `t` is 3, .* later, at 9.000"),
        (
            session(turn(0, [1, 2, 3], 64)),
            r"`requests\[0\]`: `hash_ids` has 3 ids, which would fit 21 tokens",
        ),
        (session(turn(0, [[1, 10**15]], 64)), r"`requests\[0\]`: `hash_ids` has 1000000000000000 ids"),
        (
            session(turn(0, [[1, 1_000_001]], 64_000_064)),
            r"`requests\[0\]`: `hash_ids` has 1000001 ids of 64 tokens, and at most 1000000 of one prompt",
        ),
        (session(block=0), r"`block_size` is 0"),
        (
            b'{"block_size": 64, "requests": 5, "tool_tokens": 0, "system_tokens": 0}',
            "`requests` is missing or no",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_place(line: bytes, told: str) -> None:
    with pytest.raises(TraceError, match=rf"sessions line 2: {told}"):
        load([session(turn(0, [1], 64)), line], "sessions")


@pytest.mark.parametrize("limit", ["MOST_OF_A_SESSION", "MOST_BLOCKS"])
def test_a_session_that_grows_without_end_is_refused_before_it_fills_the_memory(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = session(*(turn(at, [[8 * at, 8 * at + 7]], 8 * 64) for at in range(20)))
    monkeypatch.setattr(weka, limit, 20)
    assert len(load([line], "sessions").requests) == 20
    monkeypatch.setattr(weka, limit, 15)
    with pytest.raises(TraceError, match=r"`requests\[15\]`: the session has 16 blocks so far, 16 of them"):
        load([line], "sessions")


def test_a_session_that_was_left_out_changes_nothing_of_the_others() -> None:
    good = [session(turn(place, [1, 2], 128)) for place in range(3)]
    bad = session(turn(0, [1], 64), turn(1, [1, 2, 3], 64))

    with_bad = load([good[0], bad, *good[1:]], "sessions", reading=Reading(skip_bad=True))

    without = load(good, "sessions")
    assert [(r.arrival_ns, r.session) for r in with_bad.requests] == [
        (r.arrival_ns, r.session) for r in without.requests
    ]
    assert with_bad.notes["bad_lines"] == 1
    assert with_bad.notes["think_time_by_the_clock"] == without.notes["think_time_by_the_clock"]


def test_the_original_form_of_a_session_gives_the_packed_one() -> None:
    raw = gzip.decompress((PUBLIC_TRACES / RAW).read_bytes())
    with gzip.open(SESSIONS) as lines:
        packed = next(line for line in lines if json.loads(line)["id"] == json.loads(raw)["id"])

    assert requests_of(raw) == requests_of(packed)


def test_710_sessions_take_little_memory() -> None:
    with gzip.open(SESSIONS) as lines:
        workload = load(lines, SESSIONS.name)

    # 710 sessions and 63 subagents ask 49,334 times, 27 of them for nothing.
    assert len(workload.requests) == 49_307
    assert len({request.session for request in workload.requests}) == 773
    assert workload.notes["zero_tokens"] == 27
    places = sum(len(request.blocks) for request in workload.requests)
    objects = {id(block) for request in workload.requests for block in request.blocks}
    assert 8 * places + 32 * len(objects) < 150_000_000
