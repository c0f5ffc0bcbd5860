"""kvpool's own form: what is written is read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.own import written
from kvpool.sim.workloads.reading import Reading, TraceError
from kvpool.sim.workloads.request import BATCH, INTERACTIVE, Request, Workload

HEADER = '{"kvpool-trace":1,"block_tokens":16}\n'


@st.composite
def requests(draw: st.DrawFn) -> Request:
    prompt = draw(st.integers(1, 200))
    full = draw(st.sampled_from([0, prompt // 16, -(-prompt // 16)]))
    return Request(
        draw(st.integers(0, 10**12)),
        prompt,
        draw(st.integers(1, 200)),
        tuple(draw(st.lists(st.integers(-(2**63), 2**64), min_size=full, max_size=full))),
        draw(st.sampled_from([INTERACTIVE, BATCH])),
        draw(st.text(max_size=5)),
        draw(st.integers(-1, 5)),
        draw(st.sampled_from([-1, 0, 10**9])),
    )


@given(st.lists(requests(), min_size=1, max_size=6))
def test_what_is_written_is_read_again(made: list[Request]) -> None:
    made.sort(key=lambda request: request.arrival_ns)
    first_ns = made[0].arrival_ns
    workload = Workload(tuple(made), 16, "made", "", {"zero_tokens": 3})

    again = load(written(workload), "made")

    assert [
        (r.arrival_ns + first_ns, r.prompt_tokens, r.blocks, r.client, r.slo_class) for r in again.requests
    ] == [(r.arrival_ns, r.prompt_tokens, r.blocks, r.client, r.slo_class) for r in made]
    assert [(r.output_tokens, r.session, r.think_ns) for r in again.requests] == [
        (r.output_tokens, r.session, r.think_ns) for r in made
    ]
    assert again.block_tokens == 16
    assert again.notes["zero_tokens"] == 3


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            '{"arrival_ns":0,"prompt_tokens":5,"output_tokens":1,"block":[1]}',
            "`block` is no field of a request; those",
        ),
        ('{"arrival_ns":-1,"prompt_tokens":5,"output_tokens":1}', "`arrival_ns` is -1, and must be a time"),
        (
            '{"arrival_ns":0,"prompt_tokens":5,"output_tokens":1,"slo_class":"gold"}',
            "`slo_class` is 'gold', and must",
        ),
        ('{"arrival_ns":0,"prompt_tokens":5,"output_tokens":1,"blocks":[1,2]}', "`blocks` has 2 ids"),
    ],
)
def test_requests_that_make_no_sense_are_refused(line: str, told: str) -> None:
    with pytest.raises(TraceError, match=f"own line 2: {told}"):
        load([HEADER, line], "own")


def test_a_trace_of_another_version_is_refused() -> None:
    with pytest.raises(TraceError, match="own line 1: `kvpool-trace` is 2, and this release reads 1"):
        load(['{"kvpool-trace":2,"block_tokens":16}'], "own")


def test_a_block_size_against_the_files_own_is_refused() -> None:
    with pytest.raises(TraceError, match="`block_tokens` is 16, and --block-tokens 32"):
        load([HEADER], "own", reading=Reading(block_tokens=32))
