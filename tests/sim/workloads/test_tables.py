"""The CSV forms, and Qwen's: columns by name, moments, sessions, made arrivals."""

import gzip

import pytest

from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.reading import Reading, TraceError
from tests.sim.workloads.made_lines import PUBLIC_TRACES, line

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
V1 = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
V3 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
MS = 1_000_000


def test_azure_moments_are_read_to_the_last_decimal() -> None:
    workload = load(
        [AZURE, "2023-11-16 18:15:46.6805900,374,44\n", "2023-11-16 18:15:50.9951690,396,109\n"], "azure"
    )

    assert [request.arrival_ns for request in workload.requests] == [0, 4_314_579_000]
    assert [(request.prompt_tokens, request.output_tokens) for request in workload.requests] == [
        (374, 44),
        (396, 109),
    ]


def test_azure_moments_may_have_a_zone_and_a_new_day() -> None:
    workload = load(
        [
            AZURE,
            "2024-02-28 23:59:59+00:00,1,1\n",
            "2024-02-29T01:00:01.5+01:00,1,1\n",
            "2024-02-29 00:00:02Z,1,1",
        ],
        "azure",
    )

    assert [request.arrival_ns for request in workload.requests] == [0, 2500 * MS, 3000 * MS]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("yesterday,1,1", "`TIMESTAMP` is 'yesterday', and must be a date and time like"),
        ("2023-02-30 00:00:00,1,1", "`TIMESTAMP` is '2023-02-30 00:00:00': day is out of range"),
        ("2023-11-16 18:15:46,1", "has 2 columns, and the header has 3: TIMESTAMP, ContextTokens"),
        ("2023-11-16 18:15:46,,1", "`ContextTokens` is missing, and must be a number"),
        ("2023-11-16 18:15:46,-3,1", "`ContextTokens` is '-3', and must be from 0 to 100000000 tokens"),
        ("2023-11-16 18:15:46,1.5,1", "`ContextTokens` is '1.5', and must be a whole number of tokens"),
        ("2023-11-16 18:15:46,nan,1", "`ContextTokens` is 'nan', and must be a finite number"),
        ("2023-11-16 18:15:46,9e99,1", "`ContextTokens` is '9e99', and must be from 0"),
    ],
)
def test_rows_that_make_no_sense_are_refused(row: str, told: str) -> None:
    with pytest.raises(TraceError, match=f"azure line 3: {told}"):
        load([AZURE, "2023-11-16 18:15:46.6805900,374,44\n", row], "azure")


def test_burstgpt_is_read_by_column_name_in_all_its_releases() -> None:
    old = load([V1, "5,ChatGPT,472,18,490,Conversation log\n", "45.5,GPT-4,10,2,12,API log\n"], "v1")
    new = load(
        [V3, "5,s1,0.3,ChatGPT,472,18,490,Conversation log\n", "45.5,s1,2,GPT-4,10,2,12,API log"], "v3"
    )

    for workload in (old, new):
        assert [request.arrival_ns for request in workload.requests] == [0, 40_500 * MS]
        assert [request.client for request in workload.requests] == ["ChatGPT", "GPT-4"]
    assert [request.session for request in old.requests] == [-1, -1]
    assert [request.session for request in new.requests] == [0, 0]


def test_rows_of_burstgpt_without_tokens_are_left_out_and_counted() -> None:
    workload = load([V1, "5,ChatGPT,472,18,490,x\n", "6,ChatGPT,10,0,10,x\n", "7,ChatGPT,0,0,0,x\n"], "v1")

    assert len(workload.requests) == 1
    assert workload.notes == {"zero_tokens": 2}


def test_a_turn_of_qwen_is_in_the_session_of_the_one_before() -> None:
    def turn(chat: int, parent: int, at: float) -> bytes:
        return line(
            chat_id=chat,
            parent_chat_id=parent,
            timestamp=at,
            input_length=32,
            output_length=3,
            type="text",
            turn=1,
            hash_ids=[1, 2],
        )

    workload = load(
        [turn(1, -1, 0.5), turn(2, -1, 1), turn(3, 1, 2.25), turn(4, 3, 3), turn(5, 77, 4)], "qwen"
    )

    assert workload.block_tokens == 16
    assert [request.session for request in workload.requests] == [0, 1, 0, 0, 2]
    assert workload.requests[2].arrival_ns == 1750 * MS
    assert workload.notes == {"turns_whose_parent_is_not_there": 1}


def test_lengths_alone_come_once_a_second_and_say_so() -> None:
    workload = load(["prompt_tokens,output_tokens\n", "5,6\n"], "lengths")

    assert workload.notes == {"arrivals_made_with_seed": 0, "arrivals_made_per_1000_seconds": 1000}


def test_a_rate_of_nothing_is_refused() -> None:
    lines = ["num_prefill_tokens,num_decode_tokens\n", "5,6\n"]

    with pytest.raises(TraceError, match=r"lengths line 1: .* no times, and --rate is 0; give it"):
        load(lines, "lengths", reading=Reading(arrivals_per_second=0))


def test_arrivals_made_for_lengths_have_the_rate_and_the_seed() -> None:
    lines = ["num_prefill_tokens,num_decode_tokens\n", *("100,10\n" for _ in range(4000))]

    workload = load(lines, "lengths", reading=Reading(arrivals_per_second=8.0, seed=5))

    seconds = workload.requests[-1].arrival_ns / 1e9
    assert 4000 / seconds == pytest.approx(8, rel=0.05)
    assert workload.notes == {"arrivals_made_with_seed": 5, "arrivals_made_per_1000_seconds": 8000}
    assert workload == load(lines, "lengths", reading=Reading(arrivals_per_second=8.0, seed=5))


@pytest.mark.parametrize(
    ("name", "requests", "mean_prompt", "mean_output"),
    [
        ("azure_llm_2023_conv.csv", 19_366, 1155, 211),
        ("azure_llm_2023_code.csv", 8_819, 2048, 28),
        ("vidur_arxiv_summarization_lengths.csv", 28_257, 2588, 291),
    ],
)
def test_the_public_tables_are_read_whole(
    name: str, requests: int, mean_prompt: int, mean_output: int
) -> None:
    with gzip.open(PUBLIC_TRACES / f"{name}.gz") as lines:
        workload = load(lines, name)

    assert len(workload.requests) == requests
    assert round(sum(each.prompt_tokens for each in workload.requests) / requests) == mean_prompt
    assert round(sum(each.output_tokens for each in workload.requests) / requests) == mean_output


def test_a_cell_that_the_reader_of_csv_refuses_is_a_fault_of_its_line() -> None:
    with pytest.raises(TraceError, match="azure line 2: cannot be read as CSV: field larger than"):
        load([AZURE, f'"{"x" * 200_000}",5,3\n'], "azure")
