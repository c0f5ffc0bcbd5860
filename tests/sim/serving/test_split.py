"""Fleets with a hand-off from prefill to decode instances."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.prediction import Prediction
from kvpool.plan.timing.model import LinkModel
from kvpool.sim.serving.design import FirstToken, HandOff
from kvpool.sim.serving.split import NOT_TAKEN, TOO_LONG_TO_DECODE, TOO_LONG_TO_PREFILL, SplitFleet
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import Request, Workload
from tests.sim.serving.fleets import (
    BYTES_PER_TOKEN,
    CARD,
    LINK,
    SPEC,
    WORKLOADS,
    split,
    split_fleet,
    workload,
)


def test_a_request_alone_takes_prefill_then_transfer_then_its_steps() -> None:
    run = split_fleet().run(workload(Request(1000, 2000, 50)))
    (one,) = run.outcomes
    prefilled = 1000 + CARD.prefill_ns(2000)
    landed = prefilled + LINK.transfer_ns(2000 * BYTES_PER_TOKEN)
    steps = [CARD.step_ns(1, 2000 + step) for step in range(50)]
    assert one.first_ns == pytest.approx(landed + steps[0], abs=2)
    assert one.end_ns == pytest.approx(landed + sum(steps), abs=60)
    assert (run.made_tokens, run.computed_tokens) == (50, 2000)


def test_a_first_token_made_by_prefill_is_out_before_the_transfer() -> None:
    fleet = split_fleet(replace(split(), first_token=FirstToken.PREFILL))
    run = fleet.run(workload(Request(0, 2000, 50), Request(10**12, 100, 1)))
    assert [one.ttft_ns for one in run.outcomes] == [CARD.prefill_ns(2000), CARD.prefill_ns(100)]
    assert run.outcomes[1].e2e_ns == run.outcomes[1].ttft_ns
    assert run.made_tokens == 49


def test_two_transfers_to_one_instance_share_its_link() -> None:
    slow = replace(SPEC, link=LinkModel(0, 100_000_000))
    design = split(prefill=2, decode=1, spec=slow)
    run = split_fleet(design).run(workload(Request(0, 2000, 1), Request(0, 2000, 1)))
    alone = split_fleet(design).run(workload(Request(0, 2000, 1)))
    transfer = slow.link.transfer_ns(2000 * BYTES_PER_TOKEN)
    for one in run.outcomes:
        assert one.end_ns == pytest.approx(alone.outcomes[0].end_ns + transfer, rel=0.001)


def test_source_first_computes_while_there_is_no_room_and_destination_first_waits() -> None:
    small = replace(SPEC, capacity_tokens=5000)
    requests = workload(Request(0, 4000, 900), Request(2_000_000_000, 2000, 10))
    ends = {}
    for order in HandOff:
        design = replace(split(prefill=2, spec=small), hand_off=order)
        first, second = split_fleet(design).run(requests).outcomes
        assert second.first_ns > first.end_ns
        ends[order] = second.end_ns
    # What waited with its KV at the source only has to be moved; the other is computed first.
    difference = ends[HandOff.DESTINATION_FIRST] - ends[HandOff.SOURCE_FIRST]
    assert difference == pytest.approx(CARD.prefill_ns(2000), rel=0.01)


def test_a_source_full_of_kv_that_waits_computes_nothing_more() -> None:
    prefill = replace(SPEC, capacity_tokens=6000)
    decode = replace(SPEC, capacity_tokens=5000)
    design = replace(split(), prefill=(prefill,), decode=(decode,))
    requests = [Request(0, 4000, 800), Request(1, 4000, 1), Request(2, 4000, 1)]
    first, second, third = split_fleet(design).run(workload(*requests)).outcomes
    assert second.first_ns > first.end_ns
    # The third prompt had no room beside the second one's KV until that was moved.
    assert third.first_ns - second.first_ns > CARD.prefill_ns(4000)


def test_what_can_never_fit_is_refused_and_says_why() -> None:
    decode = replace(SPEC, capacity_tokens=3000)
    design = replace(split(), decode=(decode,))
    run = split_fleet(design).run(
        workload(Request(0, 60_000, 10), Request(0, 2500, 501), Request(0, 2500, 500))
    )
    assert [one.refused for one in run.outcomes] == [TOO_LONG_TO_PREFILL, TOO_LONG_TO_DECODE, ""]
    assert [(one.needed_tokens, one.room_tokens) for one in run.outcomes] == [
        (60_000, SPEC.capacity_tokens),
        (3001, 3000),
        (0, 0),
    ]


class RefusesAll:
    def choose(self, *_: object) -> None:
        return None


def test_a_prefill_router_may_refuse() -> None:
    fleet = SplitFleet(split(), ROUTERS["RoundRobin"](Stream(0)), RefusesAll())
    (one,) = fleet.run(workload(Request(0, 10, 10))).outcomes
    assert one.refused == NOT_TAKEN


class Underestimates:
    def predict(self, number: int, request: Request) -> Prediction:
        return Prediction(1, 1)

    def learn(self, request: Request) -> None:
        pass


@settings(deadline=None, max_examples=40)
@given(WORKLOADS)
def test_sequences_that_outgrow_their_reservation_are_computed_again_and_still_end(
    requests: Workload,
) -> None:
    small = replace(SPEC, capacity_tokens=9500)
    run = SplitFleet(
        split(decode=2, spec=small), ROUTERS["RoundRobin"](Stream(0)), None, Underestimates()
    ).run(requests)
    assert all(one.end_ns >= one.first_ns > one.arrival_ns for one in run.outcomes)
    assert run.made_tokens == sum(one.output_tokens for one in run.outcomes)


def test_a_burst_that_was_underestimated_is_preempted() -> None:
    small = replace(SPEC, capacity_tokens=9500)
    fleet = SplitFleet(split(spec=small), ROUTERS["RoundRobin"](Stream(0)), None, Underestimates())
    run = fleet.run(workload(*(Request(0, 3000, 400) for _ in range(3))))
    assert sum(one.preempted for one in run.outcomes) >= 1
    assert sum(one.recomputed_tokens for one in run.outcomes) >= 3000


@settings(deadline=None, max_examples=40)
@given(WORKLOADS, st.sampled_from(sorted(ROUTERS)), st.sampled_from(HandOff), st.sampled_from([0, 10**9]))
def test_tokens_and_bytes_are_conserved_whatever_the_rule(
    requests: Workload, name: str, order: HandOff, interval: int
) -> None:
    design = replace(split(2, 3), hand_off=order, report_interval_ns=interval)
    run = SplitFleet(design, ROUTERS[name](Stream(5))).run(requests, samples=10)
    served = [one for one in run.outcomes if not one.refused]
    assert len(run.outcomes) == len(requests.requests)
    assert run.made_tokens == sum(one.output_tokens for one in served)
    assert run.computed_tokens == sum(one.prompt_tokens - one.hit_tokens for one in served)
    moved = sum(link.moved_bytes for link in run.links.values())
    assert moved == BYTES_PER_TOKEN * sum(one.prompt_tokens for one in served)
    assert all(one.arrival_ns < one.first_ns <= one.end_ns <= run.end_ns for one in served)
    assert len(run.samples) <= 20


@settings(deadline=None, max_examples=40)
@given(WORKLOADS, st.sampled_from(sorted(ROUTERS)))
def test_the_same_run_gives_the_same_outcomes(requests: Workload, name: str) -> None:
    runs = [SplitFleet(split(2, 3), ROUTERS[name](Stream(5))).run(requests) for _ in range(2)]
    assert runs[0] == runs[1]


def test_a_turn_comes_when_the_one_before_it_has_ended_and_the_user_has_thought() -> None:
    requests = [
        Request(0, 100, 50, session=1),
        Request(1, 100, 10),
        Request(2, 200, 10, session=1, think_ns=7_000_000_000),
    ]
    first, _, second = split_fleet().run(workload(*requests)).outcomes
    assert second.arrival_ns == first.end_ns + 7_000_000_000
