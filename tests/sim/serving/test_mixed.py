"""Fleets whose instances compute prompts and make answers in one batch."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.serving.mixed import TOO_LONG, MixedFleet
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import Request, Workload
from tests.sim.serving.fleets import (
    BLOCK,
    CARD,
    SPEC,
    WORKLOADS,
    mixed,
    mixed_fleet,
    split,
    split_fleet,
    workload,
)

CHUNK = 2048


def test_a_request_alone_takes_its_chunks_and_then_its_steps() -> None:
    (one,) = mixed_fleet().run(workload(Request(7, 5000, 50))).outcomes
    chunks = CARD.prefill_ns(5000) + 2 * CARD.prefill_base_ns
    assert one.ttft_ns == pytest.approx(chunks, abs=10)
    steps = [CARD.step_ns(1, 5001 + step) for step in range(49)]
    assert one.e2e_ns == pytest.approx(chunks + sum(steps), abs=60)


def test_chunks_slow_the_sequences_that_decode_beside_them_and_no_more_than_one_budget_each() -> None:
    alone = mixed_fleet().run(workload(Request(0, 100, 100))).outcomes[0]
    crowded = mixed_fleet().run(workload(Request(0, 100, 100), Request(10**9, 6000, 1)))
    slowed = crowded.outcomes[0]
    chunks = CARD.prefill_ns(6000) - CARD.prefill_base_ns
    assert slowed.e2e_ns - alone.e2e_ns == pytest.approx(chunks, rel=0.001)


def test_prompts_that_come_together_share_a_step_and_are_computed_in_order() -> None:
    run = mixed_fleet().run(workload(*(Request(0, 500, 1) for _ in range(8))))
    firsts = [one.first_ns for one in run.outcomes]
    assert len(set(firsts[:4])) == 1
    assert firsts == sorted(firsts)
    assert firsts[4] > firsts[3]


def test_a_shared_prefix_is_computed_once_and_the_last_token_always() -> None:
    blocks = tuple(range(4))
    requests = [Request(0, 4 * BLOCK, 1, blocks), Request(10**10, 4 * BLOCK, 1, blocks)]
    requests.append(Request(2 * 10**10, 4 * BLOCK + 1, 1, blocks))
    run = mixed_fleet().run(workload(*requests))
    assert [one.hit_tokens for one in run.outcomes] == [0, 3 * BLOCK, 4 * BLOCK]
    assert [one.deepest for one in run.outcomes] == [Tier.NEW, Tier.HBM, Tier.HBM]


def test_what_another_instance_holds_counts_as_computed_again() -> None:
    blocks = tuple(range(4))
    requests = [Request(0, 4 * BLOCK + 1, 1, blocks), Request(10**10, 4 * BLOCK + 1, 1, blocks)]
    run = mixed_fleet(mixed(2)).run(workload(*requests))
    assert [one.deepest for one in run.outcomes] == [Tier.NEW, Tier.RECOMPUTE]
    assert run.unique_share == pytest.approx(0.5)


def test_a_request_larger_than_the_memory_is_refused() -> None:
    run = mixed_fleet().run(workload(Request(0, SPEC.capacity_tokens, 1), Request(0, 10, 1)))
    assert [one.refused for one in run.outcomes] == [TOO_LONG, ""]
    long, short = run.outcomes
    assert long.needed_tokens == long.prompt_tokens + long.output_tokens > long.room_tokens
    assert (short.needed_tokens, short.room_tokens) == (0, 0)


def test_answers_that_outgrow_the_memory_push_out_the_one_that_joined_last() -> None:
    small = replace(SPEC, capacity_tokens=3000)
    run = mixed_fleet(mixed(spec=small)).run(workload(*(Request(0, 900, 400) for _ in range(3))))
    assert [one.preempted > 0 for one in run.outcomes] == [False, False, True]
    assert sum(one.recomputed_tokens for one in run.outcomes) >= 900


def test_a_batch_holds_no_more_sequences_than_it_may() -> None:
    design = mixed(spec=replace(SPEC, most_running=2))
    run = mixed_fleet(design).run(workload(*(Request(0, 100, 100) for _ in range(4))))
    first, second, third, fourth = run.outcomes
    assert third.first_ns > min(first.end_ns, second.end_ns)
    assert fourth.first_ns > min(first.end_ns, second.end_ns)


SMALL = st.sampled_from([9500, 12_000, SPEC.capacity_tokens])


@settings(deadline=None, max_examples=40)
@given(WORKLOADS, st.sampled_from(sorted(ROUTERS)), SMALL, st.sampled_from([0, 10**9]))
def test_tokens_are_conserved_whatever_the_rule_and_however_tight_the_memory(
    requests: Workload, name: str, capacity_tokens: int, interval: int
) -> None:
    design = replace(mixed(2, replace(SPEC, capacity_tokens=capacity_tokens)), report_interval_ns=interval)
    run = MixedFleet(design, ROUTERS[name](Stream(5))).run(requests, samples=10)
    assert not any(one.refused for one in run.outcomes)
    assert run.computed_tokens == sum(one.prompt_tokens - one.hit_tokens for one in run.outcomes)
    # The first token of an answer, and one after each preemption, is made by the last chunk of a prompt.
    chunked = sum(1 + one.preempted for one in run.outcomes)
    assert run.made_tokens == sum(one.output_tokens for one in run.outcomes) - chunked
    assert all(one.arrival_ns < one.first_ns <= one.end_ns <= run.end_ns for one in run.outcomes)


@settings(deadline=None, max_examples=40)
@given(WORKLOADS, st.sampled_from(sorted(ROUTERS)))
def test_the_same_run_gives_the_same_outcomes(requests: Workload, name: str) -> None:
    runs = [MixedFleet(mixed(3), ROUTERS[name](Stream(5))).run(requests) for _ in range(2)]
    assert runs[0] == runs[1]


def test_prompts_whose_length_costs_nothing_take_the_base_of_a_step() -> None:
    flat = replace(CARD, prefill_base_ns=5e9, prefill_token_ns=0.0, prefill_square_ns=0.0)
    design = mixed(spec=replace(SPEC, timing=flat))
    run = mixed_fleet(design).run(workload(Request(0, 1000, 1), Request(60 * 10**9, 1000, 1)))
    assert [one.ttft_ns for one in run.outcomes] == [5 * 10**9, 5 * 10**9]


HOUR = 3600 * 10**9


@pytest.mark.parametrize("interval", [0, 60 * 10**9])
def test_hours_without_a_request_are_no_reason_to_end(interval: int) -> None:
    requests = workload(*(Request(place * 5 * HOUR, 1000, 3) for place in range(3)))
    for fleet in (
        mixed_fleet(replace(mixed(), report_interval_ns=interval)),
        split_fleet(replace(split(), report_interval_ns=interval)),
    ):
        run = fleet.run(requests, samples=200)
        assert [one.refused for one in run.outcomes] == ["", "", ""]
        assert run.end_ns > 10 * HOUR


def test_a_step_that_takes_hours_is_waited_for() -> None:
    slow = replace(CARD, prefill_base_ns=2.0 * HOUR, step_base_ns=0.1 * HOUR)
    requests = workload(Request(0, 1000, 100), Request(1, 1000, 1))
    for fleet in (
        mixed_fleet(mixed(spec=replace(SPEC, timing=slow))),
        split_fleet(
            replace(split(), prefill=(replace(SPEC, timing=slow),), decode=(replace(SPEC, timing=slow),))
        ),
    ):
        run = fleet.run(requests, samples=200)
        assert all(one.end_ns >= 2 * HOUR for one in run.outcomes)
        assert run.end_ns > 11 * HOUR
