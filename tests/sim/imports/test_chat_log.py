"""Logs of OpenAI-style requests, in the shapes in which people have them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.sim.imports.log_forms import log_opened
from kvpool.sim.imports.salted import SaltedIds
from kvpool.sim.workloads.load import load, load_with
from kvpool.sim.workloads.own import written
from kvpool.sim.workloads.reading import Reading, TraceError
from kvpool.sim.workloads.request import Workload

SALT = b"0123456789abcdef"
USAGE = {"prompt_tokens": 20, "completion_tokens": 3}
MESSAGES = [
    {"role": "system", "content": "Answer in rhyme." * 4},
    {"role": "user", "content": "Sing, goddess"},
]


def imported(
    *records: Mapping[str, Any],
    salt: bytes = SALT,
    block_tokens: int = 4,
    bytes_per_token: float | None = 4.0,
    skip_bad: bool = False,
) -> Workload:
    ids = SaltedIds(salt)
    return load_with(
        [json.dumps(record) + "\n" for record in records],
        "log",
        lambda first: log_opened(first, None, ids, block_tokens, bytes_per_token),
        Reading(skip_bad=skip_bad),
    )


@pytest.mark.parametrize(
    "record",
    [
        {"created": 5, "model": "m", "messages": MESSAGES, "usage": USAGE},
        {
            "timestamp": "2026-01-01T00:00:00Z",
            "request": {"messages": MESSAGES},
            "response": {"usage": USAGE},
        },
        {"ts": 1767225600123, "body": {"messages": MESSAGES}, "response": {"body": {"usage": USAGE}}},
        {"startTime": "2026-01-01 00:00:00.5", "messages": MESSAGES, **USAGE},
        {"time": "5.25", "request": {"body": {"messages": MESSAGES}}, "usage": USAGE},
        {"time": 5, "input": MESSAGES, "usage": {"input_tokens": 20, "output_tokens": 3}},
        {"time": 5, "messages": MESSAGES, "usage": {**USAGE, "input_tokens": 7}},
        {
            "time": 5,
            "messages": MESSAGES,
            "usage": {
                "input_tokens": 4,
                "cache_read_input_tokens": 15,
                "cache_creation_input_tokens": 1,
                "output_tokens": 3,
            },
        },
    ],
)
def test_a_request_is_found_in_every_shape(record: dict[str, Any]) -> None:
    (request,) = imported(record).requests

    assert (request.prompt_tokens, request.output_tokens) == (20, 3)
    assert request.blocks == imported({"time": 1, "messages": MESSAGES, "usage": USAGE}).requests[0].blocks
    assert len(request.blocks) == 5


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (5, 7.5),
        (1767225600, 1767225602.5),
        (1767225600000, 1767225602500),
        (1767225600000000, 1767225602500000),
    ],
)
def test_times_are_seconds_or_smaller_units(one: float, other: float) -> None:
    workload = imported(*({"time": at, "messages": MESSAGES, "usage": USAGE} for at in (one, other)))

    assert [request.arrival_ns for request in workload.requests] == [0, 2_500_000_000]


def test_a_conversation_that_goes_on_shares_its_blocks() -> None:
    more = [
        *MESSAGES,
        {"role": "assistant", "content": "Of wrath"},
        {"role": "user", "content": "of whom, exactly?"},
    ]

    first, second = imported(
        {"time": 1, "messages": MESSAGES, "usage": USAGE},
        {"time": 2, "messages": more, "usage": {"prompt_tokens": 33, "completion_tokens": 1}},
    ).requests

    assert second.blocks[: len(first.blocks)] == first.blocks
    assert len(second.blocks) == 8


def test_tools_come_before_messages_and_change_all_blocks() -> None:
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]

    with_tools, without = imported(
        {"time": 1, "messages": MESSAGES, "tools": tools, "usage": USAGE},
        {"time": 1, "messages": MESSAGES, "usage": USAGE},
    ).requests

    assert not set(with_tools.blocks) & set(without.blocks)


def test_token_ids_give_exact_blocks() -> None:
    for field in ("prompt", "prompt_token_ids"):
        (request,) = imported({"time": 1, field: [*range(11)], "usage": {"completion_tokens": 2}}).requests
        assert (request.prompt_tokens, len(request.blocks)) == (11, 2)


def test_without_usage_texts_are_measured_and_said_so() -> None:
    workload = imported(
        {"time": 1, "prompt": "x" * 40, "choices": [{"text": "y" * 12}]},
        {"time": 1, "prompt": "x" * 40, "choices": [{"message": {"role": "assistant", "content": "y" * 12}}]},
    )

    assert [request.prompt_tokens for request in workload.requests] == [10, 10]
    assert workload.requests[0].output_tokens == 3
    assert workload.notes["answers_measured_by_their_text"] == 2
    assert workload.notes["prompts_measured_by_their_text"] == 2


def test_the_bytes_of_a_token_are_measured_by_the_usage() -> None:
    workload = imported(
        *(
            {"time": at, "prompt": "x" * 60, "usage": {"prompt_tokens": 20, "completion_tokens": 1}}
            for at in range(300)
        ),
        bytes_per_token=None,
    )

    assert workload.notes["bytes_of_100_tokens"] == 300
    assert {len(request.blocks) for request in workload.requests} == {5}
    assert len(workload.requests) == 300


def test_failed_requests_are_left_out_and_counted() -> None:
    workload = imported(
        {"time": 1, "messages": MESSAGES, "usage": USAGE, "error": None, "status_code": 200},
        {"time": 2, "messages": MESSAGES, "error": {"message": "overloaded"}},
        {"time": 3, "messages": MESSAGES, "status_code": 429},
    )

    assert len(workload.requests) == 1
    assert workload.notes["failed_requests"] == 2


def test_sessions_are_numbers_and_users_are_hashed() -> None:
    first, second, third = imported(
        *(
            {"time": at, "messages": MESSAGES, "usage": USAGE, "user": user, "conversation_id": session}
            for at, (user, session) in enumerate([("ann", "c-1"), ("ben", "c-2"), ("ann", "c-1")])
        )
    ).requests

    assert [each.session for each in (first, second, third)] == [0, 1, 0]
    assert first.client == third.client != second.client
    assert "ann" not in first.client


def test_images_have_a_part_in_the_blocks_but_not_by_their_size() -> None:
    def with_image(data: str) -> dict[str, Any]:
        parts = [
            {"type": "image_url", "image_url": {"url": data}},
            {"type": "text", "text": "What is this?" * 9},
        ]
        return {
            "time": 1,
            "messages": [{"role": "user", "content": parts}],
            "usage": {**USAGE, "prompt_tokens": 30},
        }

    one, other, again = imported(
        with_image("a" * 100_000), with_image("b" * 100), with_image("a" * 100_000)
    ).requests

    assert one.blocks == again.blocks
    assert not set(one.blocks) & set(other.blocks)


def test_another_salt_gives_other_ids_of_the_same_pattern() -> None:
    records = [{"time": at, "messages": MESSAGES[: 1 + at % 2], "usage": USAGE} for at in range(4)]

    one, other = (imported(*records, salt=salt) for salt in (SALT, SALT[::-1]))

    def pattern(workload: Workload) -> list[list[int]]:
        seen: dict[int, int] = {}
        return [
            [seen.setdefault(each, len(seen)) for each in request.blocks] for request in workload.requests
        ]

    assert pattern(one) == pattern(other)
    assert not {b for r in one.requests for b in r.blocks} & {b for r in other.requests for b in r.blocks}


@pytest.mark.parametrize(
    ("record", "told"),
    [
        ({"messages": MESSAGES, "usage": USAGE}, "has no time: none of timestamp, ts, time"),
        ({"time": 1, "messages": MESSAGES}, "tells no length of the answer"),
        ({"time": -1, "messages": MESSAGES, "usage": USAGE}, "`time` is -1, and must be a time from 0"),
        ({"time": 1, "usage": USAGE}, "has no prompt: none of `messages`"),
        ({"time": 1, "messages": 5, "usage": USAGE}, "`messages` is no list"),
        ({"time": 1, "prompt": ["a", "b"], "usage": USAGE}, "`prompt` holds 2 prompts"),
        ({"time": 1, "messages": MESSAGES, "usage": {**USAGE, "prompt_tokens": -4}}, "`prompt_tokens` is -4"),
        ({"time": 1, "prompt_token_ids": [1, "a"], "usage": USAGE}, "has token ids that are no list"),
    ],
)
def test_requests_that_make_no_sense_are_refused_or_counted(record: dict[str, Any], told: str) -> None:
    good = {"time": 1, "messages": MESSAGES, "usage": USAGE}

    with pytest.raises(TraceError, match=f"log line 2: {told}"):
        imported(good, record)
    assert imported(good, record, skip_bad=True).notes["bad_lines"] == 1


def test_a_log_of_something_else_is_told_what_was_looked_for() -> None:
    with pytest.raises(
        TraceError, match=r"log line 1: is neither a request .* nor a batch of KV-cache events"
    ):
        imported({"level": "info", "message": "secret words"})


def test_a_salt_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="the salt has 15 bytes, and must have at least 16"):
        SaltedIds(b"x" * 15)
    assert SaltedIds(b"x" * 16).block(-1, b"a") != SaltedIds(b"x" * 500).block(-1, b"a")


def told(at: int, text: str, prompt_tokens: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 9}
    return {"timestamp": at, "messages": [{"role": "user", "content": text}], "usage": usage}


@given(
    st.lists(
        st.tuples(st.text(alphabet="ab 1", min_size=1, max_size=400), st.integers(1, 400)),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_imported_can_be_read_whatever_the_bytes_of_a_token(prompts: list[tuple[str, int]]) -> None:
    records = [told(at, text, count) for at, (text, count) in enumerate(prompts)]
    workload = imported(*records, bytes_per_token=None)
    again = load(written(workload), "again")
    assert again.requests == workload.requests


def test_a_prompt_with_fewer_bytes_for_a_token_than_the_log_has_blocks_for_all_its_tokens() -> None:
    words, digits = told(1, "word " * 400, 400), told(9, "1 2 3 " * 200, 600)
    one, other, again = imported(words, digits, told(12, "1 2 3 " * 200, 600), bytes_per_token=None).requests
    assert len(one.blocks) == 100
    assert len(other.blocks) == 150
    assert other.blocks == again.blocks


def test_a_prompt_with_far_more_tokens_than_text_shares_nothing_and_is_counted() -> None:
    pictures = [told(at, "What is this?", 1200) for at in (1, 2)]
    workload = imported(*pictures, bytes_per_token=4.0)
    assert [request.blocks for request in workload.requests] == [(), ()]
    assert workload.notes["prompts_longer_than_their_text"] == 2
