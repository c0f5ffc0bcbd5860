"""The replay counts a block as a hit only when its own bytes come back from the real store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from demo.neighbours.mooncake import MooncakeMaster
from demo.neighbours.store import SMALLEST_SEGMENT_BYTES, join_store
from demo.replay import Replay, ReplayCounts, block_content, block_key
from demo.trace import DEFAULT_TRACE, TracedRequest, TraceUnreadableError, read_trace, reuse_ceiling
from devcluster.ports import free_port
from tests.neighbours.conftest import LOOPBACK

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

BLOCK_BYTES = 4096


def requests_of(*blocks: range) -> tuple[TracedRequest, ...]:
    return tuple(
        TracedRequest(timestamp_ms=0, input_tokens=1, output_tokens=1, block_ids=tuple(ids)) for ids in blocks
    )


@pytest.fixture(scope="module")
def segment_owner(mooncake: MooncakeMaster) -> Iterator[None]:
    """Another client, that brings one smallest segment to the store."""
    owner = join_store(
        local_name=f"{LOOPBACK}:{free_port()}",
        master=mooncake.endpoint,
        segment_bytes=SMALLEST_SEGMENT_BYTES,
        buffer_bytes=1 << 20,
    )
    yield
    owner.close()


@pytest.fixture
def store(mooncake: MooncakeMaster, segment_owner: None) -> Iterator[MooncakeDistributedStore]:
    """A client without memory of its own, of an empty store."""
    client = join_store(
        local_name=f"{LOOPBACK}:{free_port()}",
        master=mooncake.endpoint,
        segment_bytes=0,
        buffer_bytes=16 << 20,
    )
    client.remove_all(True)
    yield client
    client.remove_all(True)
    client.close()


@pytest.fixture
def replay(store: MooncakeDistributedStore) -> Iterator[Callable[..., ReplayCounts]]:
    """Replays requests against the store."""
    one = Replay(store, block_bytes=BLOCK_BYTES)
    yield one.run
    one.close()


@pytest.mark.mooncake
def test_a_store_with_room_answers_exactly_what_was_seen_before(
    replay: Callable[..., ReplayCounts], mooncake: MooncakeMaster
) -> None:
    requests = requests_of(range(100), range(50, 120), range(100), range(200, 900))
    counts = replay(requests)
    assert counts.requests == 4
    assert counts.lookups == 100 + 70 + 100 + 700
    assert counts.hits == 0 + 50 + 100 + 0
    assert counts.hit_rate == reuse_ceiling(requests)
    assert counts.stored == mooncake.admin.key_count() == 820
    assert counts.wrong_bytes == counts.failed_gets == counts.failed_puts == 0


@pytest.mark.mooncake
def test_another_blocks_bytes_are_no_hit(
    store: MooncakeDistributedStore, replay: Callable[..., ReplayCounts]
) -> None:
    assert store.put(block_key(1), block_content(1, BLOCK_BYTES)) == 0
    assert store.put(block_key(2), block_content(1, BLOCK_BYTES)) == 0
    counts = replay(requests_of(range(1, 3)))
    assert (counts.hits, counts.wrong_bytes) == (1, 1)


@pytest.mark.mooncake
def test_a_store_without_room_for_all_forgets_some_and_the_rate_shows_it(
    replay: Callable[..., ReplayCounts],
) -> None:
    forwards = requests_of(*(range(start, start + 300) for start in range(0, 6000, 300)))
    requests = (*forwards, *reversed(forwards))
    counts = replay(requests)
    assert reuse_ceiling(requests) == 0.5
    assert counts.lookups == 12_000
    assert 0.1 < counts.hit_rate < 0.45
    assert counts.wrong_bytes == 0


@pytest.mark.mooncake
def test_emptying_the_store_removes_leased_blocks_too(
    store: MooncakeDistributedStore, mooncake: MooncakeMaster
) -> None:
    replay = Replay(store, block_bytes=BLOCK_BYTES)
    assert replay.run(requests_of(range(10), range(10))).hits == 10  # a read leases its block for 10 s
    replay.empty_store()
    assert mooncake.admin.key_count() == 0
    assert replay.run(requests_of(range(10))).hits == 0
    replay.close()


def test_a_block_size_that_is_no_multiple_of_64_is_refused() -> None:
    with pytest.raises(ValueError, match="a block of 100 bytes"):
        Replay(None, block_bytes=100)


def test_the_conversation_trace_has_the_look_ups_and_the_ceiling_that_are_published() -> None:
    requests = read_trace(DEFAULT_TRACE, first=2000)
    assert sum(len(request.block_ids) for request in requests) == 54_559
    assert reuse_ceiling(requests) == pytest.approx(0.2891, abs=5e-5)


def write_trace(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


GOOD_ROW = {"timestamp": 0, "input_length": 5, "output_length": 6, "hash_ids": [1, 2]}


def test_a_trace_is_read_in_order_and_no_further_than_asked(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", GOOD_ROW, {**GOOD_ROW, "hash_ids": [3]}, "not read")
    first, second = read_trace(trace, first=2)
    assert first == TracedRequest(timestamp_ms=0, input_tokens=5, output_tokens=6, block_ids=(1, 2))
    assert second.block_ids == (3,)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([GOOD_ROW], "2 requests wanted, it has 1"),
        ([GOOD_ROW, {"timestamp": 1}], "trace.jsonl:2: "),
        ([GOOD_ROW, {**GOOD_ROW, "hash_ids": ["a"]}], "trace.jsonl:2: "),
        ([GOOD_ROW, 7], "trace.jsonl:2: "),
    ],
    ids=["short", "field missing", "not a number", "not an object"],
)
def test_a_trace_that_cannot_be_read_says_where(tmp_path: Path, rows: list[object], message: str) -> None:
    trace = write_trace(tmp_path / "trace.jsonl", *rows)
    with pytest.raises(TraceUnreadableError, match=message):
        read_trace(trace, first=2)


def test_a_missing_trace_says_how_to_give_one(tmp_path: Path) -> None:
    with pytest.raises(TraceUnreadableError, match="no such trace; give one with --trace"):
        read_trace(tmp_path / "none.jsonl", first=1)
