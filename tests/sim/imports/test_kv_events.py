"""Streams of KV-cache events: prompts put together from what engines stored."""

import json
from typing import Any

import pytest

from kvpool.sim.imports.log_forms import log_opened
from kvpool.sim.imports.salted import SaltedIds
from kvpool.sim.workloads.load import load_with
from kvpool.sim.workloads.reading import Reading, TraceError
from kvpool.sim.workloads.request import Workload

SIZE = 4


def imported(*lines: object, block_tokens: int | None = None) -> Workload:
    ids = SaltedIds(b"0123456789abcdef")
    return load_with(
        [json.dumps(line) + "\n" for line in lines],
        "events",
        lambda first: log_opened(first, None, ids, block_tokens, None),
        Reading(),
    )


def stored(hashes: list[int], parent: int | None = None, **more: object) -> dict[str, Any]:
    tokens = [each * 100 + place for each in hashes for place in range(SIZE)]
    return {
        "type": "BlockStored",
        "block_hashes": hashes,
        "parent_block_hash": parent,
        "token_ids": tokens,
        "block_size": SIZE,
        "lora_id": None,
        "medium": "GPU",
        **more,
    }


def batch(at: float, *events: object, rank: int | None = None) -> dict[str, Any]:
    return {"ts": at, "events": events, "data_parallel_rank": rank}


def test_a_prompt_is_what_was_stored_after_what_was_there() -> None:
    workload = imported(
        batch(100.0, stored([1, 2, 3])), batch(200.0, stored([4, 5], parent=2)), batch(300.0, stored([9]))
    )

    first, second, third = workload.requests
    assert workload.block_tokens == SIZE
    assert [each.arrival_ns for each in workload.requests] == [0, 100_000_000_000, 200_000_000_000]
    assert [each.prompt_tokens for each in workload.requests] == [12, 16, 4]
    assert second.blocks[:2] == first.blocks[:2]
    assert len(set(first.blocks + second.blocks + third.blocks)) == 6


def test_blocks_that_fill_one_by_one_are_the_answer() -> None:
    (request,) = imported(
        batch(0.0, stored([1, 2])), batch(0.5, stored([3], parent=2)), batch(0.9, stored([4], parent=3))
    ).requests

    assert (request.prompt_tokens, request.output_tokens) == (8, 2 * SIZE + SIZE // 2)


def test_a_prompt_computed_in_pieces_is_one_prompt() -> None:
    (request,) = imported(batch(0.0, stored([1, 2])), batch(0.1, stored([3, 4, 5], parent=2))).requests

    assert request.prompt_tokens == 20


def test_what_comes_long_after_is_a_new_turn() -> None:
    workload = imported(batch(0.0, stored([1, 2])), batch(60.0, stored([3, 4], parent=2)))

    assert [each.prompt_tokens for each in workload.requests] == [8, 16]


def test_arrays_and_objects_and_single_events_are_the_same() -> None:
    event = stored([1, 2])
    array = ["BlockStored", [1, 2], None, event["token_ids"], SIZE, None, "GPU"]

    shapes = [
        batch(5.0, event),
        [5.0, [array], 0],
        [5.0, [array]],
        {**event, "timestamp": 5.0},
        batch(5.0, array),
    ]

    assert len({imported(shape).requests for shape in shapes}) == 1


def test_dynamos_events_are_read_alone_or_recorded() -> None:
    def event(at: float, worker: int, data: object) -> dict[str, Any]:
        return {"timestamp": at, "event": {"worker_id": worker, "event": {"event_id": 1, "data": data}}}

    def blocks(worker: int, *numbers: int) -> list[dict[str, int]]:
        # An engine's own hashes differ from worker to worker; those of the tokens do not.
        return [{"block_hash": 1000 * worker + each, "tokens_hash": each} for each in numbers]

    workload = imported(
        event(1000.0, 1, {"stored": {"parent_hash": None, "blocks": blocks(1, 1, 2)}}),
        event(2000.0, 2, {"stored": {"parent_hash": None, "blocks": blocks(2, 1, 2, 3)}}),
        event(3000.0, 1, {"removed": {"block_hashes": [1002]}}),
        event(4000.0, 1, {"stored": {"parent_hash": 1002, "blocks": blocks(1, 7)}}),
        event(5000.0, 2, "cleared"),
        block_tokens=32,
    )

    first, second = workload.requests
    assert workload.block_tokens == 32
    assert second.blocks[:2] == first.blocks
    assert workload.notes == {"parents_not_seen": 1, "caches_cleared": 1}


def test_equal_tokens_on_two_workers_are_equal_blocks_whatever_the_engines_call_them() -> None:
    tokens = [*range(8)]
    workload = imported(
        batch(0.0, stored([1, 2], token_ids=tokens), rank=0),
        batch(1.0, stored([77, 78], token_ids=tokens), rank=1),
    )

    assert workload.requests[0].blocks == workload.requests[1].blocks


def test_an_adapter_has_blocks_of_its_own() -> None:
    plain, adapted = imported(
        batch(0.0, stored([1])), batch(1.0, stored([1], lora_name="poems"), rank=1)
    ).requests

    assert not set(plain.blocks) & set(adapted.blocks)


def test_copies_to_lower_tiers_and_second_groups_are_passed_over() -> None:
    workload = imported(
        batch(0.0, stored([1, 2])),
        batch(20.0, stored([1, 2], medium="CPU")),
        batch(40.0, stored([1], group_idx=1)),
    )

    assert len(workload.requests) == 1
    assert workload.notes == {"events_of_lower_tiers": 1}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"ts": 2.0, "events": [{"type": "BlockMoved"}]}, "holds an event that is none of BlockStored"),
        (batch(2.0, stored([2], token_ids=[1, 2, 3])), "`token_ids` has 3 tokens, and 1 blocks of 4 have 4"),
        (batch(2.0, stored([2], block_size=16)), "`block_size` is 16, and 4 in the events before it"),
        (batch(2.0, stored([2], block_size=-1)), "`block_size` must be a whole number"),
        (batch(2.0, {"type": "BlockRemoved", "block_hashes": "all"}), "`block_hashes` is no list of hashes"),
        ({"events": []}, "has no time"),
        ({"ts": 2.0}, "holds no KV-cache events"),
        ({"ts": 2.0, "event": {"data": {"moved": 1}}}, "`data` is none of `stored`, `removed`"),
        (5, "holds no KV-cache events"),
    ],
)
def test_events_that_make_no_sense_are_refused(line: object, told: str) -> None:
    with pytest.raises(TraceError, match=f"events line 2: {told}"):
        imported(batch(1.0, stored([1])), line)


def test_a_block_size_against_the_events_own_is_refused() -> None:
    with pytest.raises(TraceError, match="`block_size` is 4, and 64 by --block-tokens"):
        imported(batch(1.0, stored([1])), block_tokens=64)
