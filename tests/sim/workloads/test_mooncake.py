"""Mooncake's form: what a line becomes, and what is refused."""

import gzip
import hashlib

import pytest

from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.reading import Reading, TraceError
from kvpool.sim.workloads.request import Request
from tests.sim.workloads.made_lines import PUBLIC_TRACES, mooncake

CONVERSATION = PUBLIC_TRACES / "mooncake_fast25_conversation_trace.jsonl.gz"


def test_a_line_becomes_a_request_with_its_prefix_blocks() -> None:
    lines = [mooncake(1500, 1000, 7, [4, 5]), mooncake(2500, 512, 8, [4])]

    workload = load(lines, "two.jsonl")

    assert workload.requests == (Request(0, 1000, 7, (4, 5)), Request(1_000_000_000, 512, 8, (4,)))
    assert workload.block_tokens == 512
    assert workload.source == "two.jsonl"
    assert workload.checksum == hashlib.sha256(b"".join(lines)).hexdigest()
    assert workload.notes == {}


def test_lines_out_of_order_are_sorted_and_counted() -> None:
    workload = load([mooncake(9000), mooncake(1000), mooncake(5000)], "mixed")

    assert [request.arrival_ns for request in workload.requests] == [0, 4_000_000_000, 8_000_000_000]
    assert workload.notes["sorted_after_lines_out_of_order"] == 1


def test_equal_arrivals_keep_the_order_of_the_file() -> None:
    lines = [mooncake(0, 512 * (1 + place), 1, [*range(place + 1)]) for place in range(9)]

    workload = load(lines, "burst")

    assert [request.prompt_tokens for request in workload.requests] == [
        512 * (1 + place) for place in range(9)
    ]


def test_arrivals_on_a_coarse_clock_are_told() -> None:
    workload = load([mooncake(3000 * (place // 4)) for place in range(12)], "bursts")

    assert workload.notes == {"arrivals_in_bursts_ns_apart": 3_000_000_000}


def test_spread_arrivals_stay_inside_their_step_and_say_so() -> None:
    lines = [mooncake(3000 * (place // 50)) for place in range(500)]
    spread = Reading(spread_ns=3_000_000_000, seed=3)

    workload = load(lines, "bursts", reading=spread)

    arrivals = [request.arrival_ns for request in workload.requests]
    assert arrivals == sorted(arrivals)
    assert arrivals[0] == 0
    in_each_step = [
        sum(3e9 * step <= arrival < 3e9 * (step + 1) for arrival in arrivals) for step in range(10)
    ]
    # The first arrival counts as 0, and so all move by less than a step of fifty.
    assert all(40 <= count <= 60 for count in in_each_step)
    assert workload.notes == {"spread_ns": 3_000_000_000, "spread_seed": 3}
    assert workload == load(lines, "bursts", reading=spread)
    assert workload != load(lines, "bursts", reading=Reading(spread_ns=3_000_000_000, seed=4))


def test_requests_without_tokens_are_left_out_and_counted() -> None:
    workload = load([mooncake(), mooncake(10, 0, 5, []), mooncake(20, 512, 0, [1])], "zero")

    assert len(workload.requests) == 1
    assert workload.notes["zero_tokens"] == 2


@pytest.mark.parametrize("ids", [[1], [1, 2]])
def test_a_partial_last_block_may_have_an_id_or_none(ids: list[int]) -> None:
    assert load([mooncake(0, 1000, 1, ids)], "partial").requests[0].blocks == tuple(ids)


@pytest.mark.parametrize("ids", [[1], [1, 2, 3, 4]])
def test_ids_that_are_not_those_of_the_prompt_are_refused_with_the_size_that_fits(ids: list[int]) -> None:
    with pytest.raises(
        TraceError,
        match=r"wrong line 2: `hash_ids` has \d ids, which would fit \d+ .* `input_length` 1024 .*--block-",
    ):
        load([mooncake(), mooncake(0, 1024, 1, ids)], "wrong")


def test_other_block_sizes_are_read_when_given() -> None:
    workload = load([mooncake(0, 32, 1, [1, 2])], "small", reading=Reading(block_tokens=16))

    assert workload.block_tokens == 16


def test_the_whole_conversation_log_is_read_in_a_quarter_of_a_second() -> None:
    with gzip.open(CONVERSATION) as lines:
        workload = load(lines, CONVERSATION.name)

    assert len(workload.requests) == 12_031
    assert sum(request.output_tokens for request in workload.requests) == 4_122_048
    assert len({block for request in workload.requests for block in request.blocks}) == 182_790
    assert workload.checksum == "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df"
