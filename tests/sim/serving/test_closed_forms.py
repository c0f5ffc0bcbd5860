"""Queues whose waiting times are known: the simulator gives them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from kvpool.plan.routing.counting import RoundRobin
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.serving.design import FirstToken, InstanceSpec, SplitDesign
from kvpool.sim.serving.split import SplitFleet
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import Request, Workload
from tests.sim.serving.fleets import CARD, OBJECTIVES, WORKLOADS, mixed, mixed_fleet, split_fleet, workload

LINEAR = TimingModel(0.0, 1000.0, 0.0, 1000.0, 0.0, 0.0)
"""A prompt takes a microsecond a token."""
FAST_LINK = LinkModel(0, 10**15)
SERVICE_NS = 1_000_000
COUNT = 40_000


def mean_wait_ns(requests: Workload) -> float:
    """Mean time in the queue of one prefill instance; the first tenth warms it up."""
    spec = InstanceSpec(LINEAR, 1 << 50, FAST_LINK, 1 << 20)
    design = SplitDesign((spec,), (spec,), 1, OBJECTIVES, first_token=FirstToken.PREFILL)
    outcomes = SplitFleet(design, RoundRobin()).run(requests).outcomes[COUNT // 10 :]
    return sum(one.ttft_ns - LINEAR.prefill_ns(one.prompt_tokens) for one in outcomes) / len(outcomes)


def arriving(load: float, exponential: bool, seed: int) -> Workload:
    gaps, sizes = Stream(seed).split("gaps"), Stream(seed).split("sizes")
    now, requests = 0.0, []
    for _ in range(COUNT):
        now += gaps.exponential(SERVICE_NS / load)
        tokens = sizes.exponential(1000.0) if exponential else 1000.0
        requests.append(Request(round(now), max(1, round(tokens)), 1))
    return workload(*requests)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_a_prefill_queue_of_equal_prompts_waits_as_m_d_1(load: float) -> None:
    # Pollaczek and Khinchine, service without variance.
    expected = load / (2 * (1 - load)) * SERVICE_NS
    assert mean_wait_ns(arriving(load, exponential=False, seed=1)) == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_a_prefill_queue_of_exponential_prompts_waits_as_m_m_1(load: float) -> None:
    expected = load / (1 - load) * SERVICE_NS
    assert mean_wait_ns(arriving(load, exponential=True, seed=2)) == pytest.approx(expected, rel=0.08)


def test_a_batch_in_steady_state_holds_what_comes_in_times_how_long_it_stays() -> None:
    # Little's law, over a stretch in which as much comes as goes.
    step_ns, output = 1_000_000, 100
    spec = InstanceSpec(replace(LINEAR, step_base_ns=step_ns), 1 << 50, FAST_LINK, 1 << 20)
    design = SplitDesign((spec,), (spec,), 1, OBJECTIVES)
    gap = 2 * step_ns
    requests = workload(*(Request(place * gap, 1, output) for place in range(1000)))
    run = SplitFleet(design, RoundRobin()).run(requests, samples=100)
    middle = [sample.running for sample in run.samples if 0.3 * 10**9 < sample.time_ns < 1.9 * 10**9]
    assert sum(middle) / len(middle) == pytest.approx(output * step_ns / gap, rel=0.03)


@settings(deadline=None, max_examples=30)
@given(WORKLOADS)
def test_no_request_is_faster_than_it_would_be_alone(requests: Workload) -> None:
    for run in (mixed_fleet(mixed(2)).run(requests), split_fleet().run(requests)):
        for one in run.outcomes:
            if one.refused:
                continue
            # A microsecond for rounding to ticks.
            assert one.ttft_ns + 1000 >= CARD.prefill_ns(one.prompt_tokens, one.hit_tokens)
            if one.output_tokens > 1:
                assert one.tpot_ns + 1000 >= CARD.step_ns(1, one.prompt_tokens)
