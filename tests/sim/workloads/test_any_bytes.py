"""Whatever stands in a file: it becomes a workload, or one message that says where it does not."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.sim.imports.log_forms import log_opened
from kvpool.sim.imports.salted import SaltedIds
from kvpool.sim.workloads.forms import FORMS
from kvpool.sim.workloads.load import load, load_with
from kvpool.sim.workloads.reading import Reading, TraceError
from kvpool.sim.workloads.request import Workload

REQUEST: dict[str, Any] = {"timestamp": 5, "input_length": 24, "output_length": 3, "hash_ids": [1, 2]}
TURN: dict[str, Any] = {"t": 0.5, "type": "n", "in": 24, "out": 3, "hash_ids": [[1, 2]], "think_time": 1.5}
AGENT: dict[str, Any] = {"tool_tokens": 8, "system_tokens": 4, "requests": [TURN, TURN]}
EVENT: dict[str, Any] = {
    "type": "BlockStored",
    "block_hashes": [1, 2],
    "parent_block_hash": None,
    "token_ids": [*range(32)],
    "block_size": 16,
}
LINES: dict[str, Any] = {
    "kvpool": {"arrival_ns": 5, "prompt_tokens": 24, "output_tokens": 3, "blocks": [1, 2], "think_ns": 4},
    "mooncake": REQUEST,
    "dynamo": {**REQUEST, "session_id": "a", "delay": 3, "wait_for": ["b"], "request_id": 7},
    "mooncake-delta": {**REQUEST, "session_id": "a"},
    "qwen": {**REQUEST, "chat_id": 1, "parent_chat_id": -1, "type": "text"},
    "weka": {
        "block_size": 12,
        **AGENT,
        "requests": [TURN, {"type": "subagent", "t": 3, "duration_ms": 9, **AGENT}],
    },
    "azure": "2023-11-16 18:15:46.6805900,374,44",
    "burstgpt": "5,s,1,m,3,4,7,x",
    "lengths": "3,4",
    "requests": {
        "time": 5,
        "request": {"messages": [{"role": "user", "content": [{"text": "hello"}]}], "tools": [{"a": 1}]},
        "response": {"usage": {"prompt_tokens": 5, "completion_tokens": 3}, "choices": [{"message": {}}]},
    },
    "kv-events": {"ts": 5, "events": [EVENT, {"type": "BlockRemoved", "block_hashes": [2]}]},
}
"""By form (or kind of log) a line that can be read."""
HEADERS = {
    "kvpool": '{"kvpool-trace":1,"block_tokens":16}',
    "azure": "TIMESTAMP,ContextTokens,GeneratedTokens",
    "burstgpt": "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total,Log Type",
    "lengths": "num_prefill_tokens,num_decode_tokens",
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        1.5,
        10**12,
        10**400,
        float("nan"),
        float("inf"),
        "",
        "x",
        "7",
        "\udcff",
        [],
        [[]],
        {},
    ]
) | st.integers(-(2**70), 2**70)


def a_place(draw: st.DrawFn, value: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    """A way to some part of a JSON value."""
    way: list[Any] = []
    while isinstance(value, dict | list) and value and (not way or draw(st.booleans())):
        key = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else [*range(len(value))]))
        way.append(key)
        value = value[key]
    return way


@st.composite
def spoilt(draw: st.DrawFn, form: str) -> bytes:
    """A line of that form with one part of another kind, left out, or cut."""
    line = LINES[form]
    if isinstance(line, str):
        cells = line.split(",")
        cells[draw(st.integers(0, len(cells) - 1))] = str(draw(ODD))
        return ",".join(cells).encode("utf-8", "surrogatepass")
    record = json.loads(json.dumps(line))
    *way, last = a_place(draw, record)
    inner = record
    for key in way:
        inner = inner[key]
    if draw(st.booleans()):
        inner[last] = draw(ODD)
    else:
        del inner[last]
    encoded = json.dumps(record).encode()
    return encoded[: draw(st.integers(0, len(encoded)))] if draw(st.integers(0, 9)) == 0 else encoded


def read(form: str, lines: list[bytes], reading: Reading) -> Workload:
    ids = SaltedIds(b"0123456789abcdef")
    if form in FORMS:
        return load(lines, "any", form, reading)
    return load_with(lines, "any", lambda first: log_opened(first, form, ids, None, None), reading)


def whole(form: str) -> list[bytes]:
    """A file of that form with one line in it that can be read."""
    line = LINES[form]
    text = line if isinstance(line, str) else json.dumps(line)
    return [f"{each}\n".encode() for each in (*([HEADERS[form]] if form in HEADERS else []), text)]


def reading_of(form: str, *, skip_bad: bool) -> Reading:
    return Reading(skip_bad=skip_bad, block_tokens=16 if form not in ("weka", "kv-events") else None)


@pytest.mark.parametrize("form", LINES)
def test_the_lines_that_are_spoilt_below_can_be_read(form: str) -> None:
    assert read(form, whole(form), reading_of(form, skip_bad=False)).requests


def spoiling(form: str) -> Callable[[], None]:
    @settings(max_examples=60)
    @given(st.lists(spoilt(form) | st.binary(max_size=20), max_size=3), st.booleans())
    def check(lines: list[bytes], skip_bad: bool) -> None:
        told = ""
        try:
            workload = read(form, [*whole(form), *lines], reading_of(form, skip_bad=skip_bad))
        except TraceError as error:
            told = str(error)
        else:
            assert min(request.arrival_ns for request in workload.requests) == 0
            assert all(request.prompt_tokens > 0 < request.output_tokens for request in workload.requests)
        assert not told or told.startswith("any line ")

    return check


@pytest.mark.parametrize("form", LINES)
def test_a_spoilt_line_is_read_or_told_and_nothing_else(form: str) -> None:
    spoiling(form)()
