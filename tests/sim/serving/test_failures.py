"""Fleets whose instances die under their requests."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.faults.domain import Domain
from kvpool.sim.faults.schedule import Fault, FaultSchedule, What
from kvpool.sim.serving.design import HandOff
from kvpool.sim.serving.mixed import MixedFleet
from kvpool.sim.serving.run import FleetRun
from kvpool.sim.serving.split import SplitFleet
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.request import Request
from tests.sim.serving.fleets import mixed, mixed_fleet, split, split_fleet, workload

STEADY = workload(*(Request(place * NS_PER_SECOND // 4, 400, 60) for place in range(200)))


def faults(*all_of_them: Fault, instances: int = 2, spares: int = 1) -> FaultSchedule:
    return FaultSchedule(Domain(instances, spares, 5.0), all_of_them)


def test_what_ran_on_a_dead_device_begins_again_and_is_served() -> None:
    calm = mixed_fleet(mixed(2)).run(STEADY)
    run = mixed_fleet(mixed(2)).run(STEADY, faults=faults(Fault(20 * NS_PER_SECOND, 0)))
    assert all(one.end_ns > 0 for one in run.outcomes)
    lost = [one for one in run.outcomes if one.recomputed_tokens]
    assert lost
    assert all(one.arrival_ns <= 20 * NS_PER_SECOND < one.end_ns for one in lost)
    assert run.computed_tokens == calm.computed_tokens + sum(one.recomputed_tokens for one in lost)
    assert any("took its place on host-2" in text for _, text in run.events)
    assert max(one.e2e_ns for one in run.outcomes) > max(one.e2e_ns for one in calm.outcomes)


def test_requests_wait_while_nobody_serves_and_go_on_when_somebody_does() -> None:
    run = mixed_fleet(mixed(1)).run(
        STEADY,
        faults=faults(
            Fault(20 * NS_PER_SECOND, 0, repaired_after_ns=60 * NS_PER_SECOND), instances=1, spares=0
        ),
    )
    assert all(one.end_ns > 0 for one in run.outcomes)
    assert not any(22 * NS_PER_SECOND < one.end_ns < 80 * NS_PER_SECOND for one in run.outcomes)


def test_until_a_silent_host_is_given_up_clients_are_refused_and_try_again() -> None:
    run = mixed_fleet(mixed(2)).run(STEADY, faults=faults(Fault(20 * NS_PER_SECOND, 0, What.HOST)))
    assert all(one.end_ns > 0 for one in run.outcomes)
    waited = [one for one in run.outcomes if one.ttft_ns > 150_000_000 and not one.recomputed_tokens]
    assert waited


def test_kv_that_is_still_at_its_source_is_sent_elsewhere_and_not_computed_again() -> None:
    tight = replace(split(2, 2).decode[0], capacity_tokens=3000)
    design = replace(split(2, 2), decode=(tight,) * 2)
    burst = workload(*(Request(place, 2000, 300) for place in range(8)))
    run = split_fleet(design).run(burst, faults=faults(Fault(3 * NS_PER_SECOND, 0)))
    assert all(one.end_ns > 0 for one in run.outcomes)
    assert any(not one.recomputed_tokens and one.end_ns > 3 * NS_PER_SECOND for one in run.outcomes)
    assert sum(one.recomputed_tokens > 0 for one in run.outcomes) <= 1
    assert run.computed_tokens < 2000 * 10


FAULTS = st.lists(
    st.builds(
        Fault,
        st.integers(0, 50 * NS_PER_SECOND),
        st.integers(0, 1),
        st.sampled_from(What),
        st.sampled_from([20 * NS_PER_SECOND, 90 * NS_PER_SECOND]),
    ),
    max_size=4,
)


@settings(max_examples=5, deadline=None)
@given(FAULTS, st.sampled_from(sorted(ROUTERS)), st.sampled_from([0, NS_PER_SECOND]))
def test_every_request_ends_once_whatever_fails(failing: list[Fault], name: str, interval: int) -> None:
    def runs() -> list[FleetRun]:
        found = [
            MixedFleet(replace(mixed(2), report_interval_ns=interval), ROUTERS[name](Stream(0))).run(
                STEADY, samples=20, faults=faults(*failing)
            )
        ]
        for order in HandOff:
            design = replace(split(2, 2), hand_off=order, report_interval_ns=interval)
            fleet = SplitFleet(design, ROUTERS[name](Stream(0)))
            found.append(fleet.run(STEADY, samples=20, faults=faults(*failing)))
        return found

    first = runs()
    for run in first:
        assert [one.number for one in run.outcomes] == list(range(len(STEADY.requests)))
        assert all(one.arrival_ns < one.first_ns <= one.end_ns for one in run.outcomes)
    assert runs() == first


def test_a_fleet_without_faults_is_asked_nothing_of_them() -> None:
    assert mixed_fleet(mixed(2)).run(STEADY) == mixed_fleet(mixed(2)).run(STEADY, faults=faults())
