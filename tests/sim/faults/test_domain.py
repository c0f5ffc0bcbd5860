"""The operator's failover core over a simulated domain."""

import pytest

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.faults.domain import Domain
from kvpool.sim.faults.schedule import Fault, FaultSchedule, What

HOUR_NS = 3600 * NS_PER_SECOND


def played(schedule: FaultSchedule, until_ns: int = HOUR_NS) -> list[tuple[int, str]]:
    words = []
    while (due := schedule.due_ns()) is not None and due <= until_ns:
        schedule.step(due)
        words += schedule.take_words()
    return words


def test_a_domain_begins_with_every_instance_served_at_full_weight() -> None:
    domain = Domain(3, 2, 20.0)
    assert domain.hosts() == ["host-0", "host-1", "host-2"]
    assert domain.weights() == [100, 100, 100]
    assert FaultSchedule(domain, []).due_ns() is None


def test_a_spare_takes_the_place_of_a_dead_device_and_works_its_way_up() -> None:
    schedule = FaultSchedule(Domain(3, 1, 20.0), [Fault(100 * NS_PER_SECOND, 1)])
    words = played(schedule)
    weights = [(time // NS_PER_SECOND, text) for time, text in words if text.startswith("weight")]
    assert weights[0][0] == 100
    assert weights[0][1].startswith("weight of instance 1: 100 to 0 (FatalEvidence, host-1/acc-0: ")
    assert [text.partition(" to ")[2].split()[0] for _, text in weights] == ["0", "10", "25", "50", "100"]
    assert weights[1][1].endswith("(SlowStart, step 1 of 4, 15s each)")
    assert 120 <= weights[1][0] <= 124
    assert schedule.hosts() == ["host-0", "host-3", "host-2"]
    assert any("took its place on host-3" in text for _, text in words)


def test_a_dead_host_is_given_up_only_when_its_lease_has_run_out() -> None:
    schedule = FaultSchedule(Domain(3, 1, 0.0), [Fault(100 * NS_PER_SECOND, 0, What.HOST)])
    words = played(schedule)
    stopped = next(time for time, text in words if text.startswith("weight of instance 0: 100 to 0"))
    assert 105 * NS_PER_SECOND < stopped < 140 * NS_PER_SECOND
    assert schedule.hosts()[0] == "host-3"


def test_in_a_group_of_two_a_silent_host_proves_nothing_and_the_core_says_so() -> None:
    fault = Fault(30 * NS_PER_SECOND, 1, What.HOST, 60 * NS_PER_SECOND)
    schedule = FaultSchedule(Domain(2, 0, 15.0), [fault])
    words = played(schedule)
    still = [(time, text) for time, text in words if "GuardGroupTooSmall" in text]
    assert len(still) == 1
    assert still[0][1].startswith("host-1: GuardGroupTooSmall, its lease ran out, but in a guard group of 2")
    assert 30 * NS_PER_SECOND < still[0][0] < 60 * NS_PER_SECOND
    stopped = next((time, text) for time, text in words if text.startswith("weight of instance 1: 100 to 0"))
    assert stopped[0] == 90 * NS_PER_SECOND, "at the Hello of its new boot: there is no engine to wait for"
    assert "NotAttached, no engine is attached" in stopped[1]


def test_what_the_core_waits_for_is_said_once_for_as_long_as_it_waits() -> None:
    words = [text for _, text in played(FaultSchedule(Domain(3, 1, 20.0), [Fault(NS_PER_SECOND, 1)]))]
    waits = [text for text in words if "EngineNotReady" in text]
    assert len(waits) == 1
    assert "waits for an engine to attach" in waits[0]


def test_without_a_spare_an_instance_is_missed_until_its_device_is_repaired() -> None:
    fault = Fault(NS_PER_SECOND, 2, repaired_after_ns=600 * NS_PER_SECOND)
    schedule = FaultSchedule(Domain(3, 0, 5.0), [fault])
    played(schedule, 500 * NS_PER_SECOND)
    assert schedule.hosts() == ["host-0", "host-1", ""]
    assert schedule.weights() == [100, 100, 0]
    played(schedule, 1200 * NS_PER_SECOND)
    assert schedule.hosts() == ["host-0", "host-1", "host-2"]


def test_a_repaired_host_is_the_next_spare() -> None:
    faults = [
        Fault(NS_PER_SECOND, 0, repaired_after_ns=300 * NS_PER_SECOND),
        Fault(900 * NS_PER_SECOND, 1),
    ]
    schedule = FaultSchedule(Domain(2, 1, 1.0), faults)
    played(schedule)
    assert schedule.hosts() == ["host-2", "host-0"]


def test_rounds_are_done_only_while_somebody_has_to_decide() -> None:
    schedule = FaultSchedule(Domain(4, 1, 5.0), [Fault(1000 * NS_PER_SECOND, 0)])
    rounds = 0
    while (due := schedule.due_ns()) is not None:
        schedule.step(due)
        rounds += 1
    assert rounds < 300


@pytest.mark.parametrize("instances", [1, 12])
def test_small_and_larger_domains_settle(instances: int) -> None:
    domain = Domain(instances, 1, 3.0)
    assert len(domain.slots) == instances
    assert all(domain.hosts())
