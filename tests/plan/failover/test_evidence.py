"""From evidence about a device to a verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kvpool.api.kvnode import DeviceVerdict
from kvpool.api.supernode import Evidence, EvidenceClass, EvidenceRule
from kvpool.model.instant import Instant
from kvpool.model.observations import AgentView, DeviceView, EvidenceView
from kvpool.plan.evidence import DeviceFinding, finding_of
from tests.builders.failover import World, two_racks

NOW = Instant(1000.0, datetime(2026, 1, 2, tzinfo=UTC))
TABLE = Evidence(table=(EvidenceRule(source="nvml", code="63", evidence_class=EvidenceClass.SOFT, n=3),))


def agent(**changes: object) -> AgentView:
    view = two_racks().start().operator.views["node-1"]
    return replace(view, reported_at=NOW.monotonic_seconds, **changes)  # type: ignore[arg-type]  # any field


def seen(grade: EvidenceClass, code: str = "79", *ages: float) -> EvidenceView:
    moments = tuple(NOW.monotonic_seconds - age for age in (ages or (5.0,)))
    return EvidenceView("nvml", code, grade, len(moments), moments[0], moments[-1], moments)


def judge(
    *evidence: EvidenceView, policy: Evidence = TABLE, observed: bool = True, **changes: object
) -> DeviceFinding:
    device = DeviceView("acc-0", "uuid", "", evidence, observed)
    return finding_of(device, agent(**changes), policy, {}, NOW)


@pytest.mark.parametrize("grade", [EvidenceClass.FATAL, EvidenceClass.LOST])
def test_grave_evidence_makes_a_device_faulty_at_once(grade: EvidenceClass) -> None:
    found = judge(seen(grade, "79", 0.0))
    assert found.verdict is DeviceVerdict.FAULTY
    assert found.reason.code == f"{grade.value}Evidence"


@pytest.mark.parametrize("grade", [EvidenceClass.WARN, EvidenceClass.INFO])
def test_warnings_never_make_a_device_anything_but_healthy(grade: EvidenceClass) -> None:
    assert judge(seen(grade, "1", *range(500, 0, -1))).verdict is DeviceVerdict.HEALTHY


def test_the_table_overrides_what_the_provider_declares() -> None:
    table = Evidence(table=(EvidenceRule(source="nvml", code="109", evidence_class=EvidenceClass.WARN),))
    assert judge(seen(EvidenceClass.FATAL, "109"), policy=table).verdict is DeviceVerdict.HEALTHY
    assert judge(seen(EvidenceClass.FATAL, "109")).verdict is DeviceVerdict.FAULTY


def test_soft_evidence_counts_only_when_seen_often_enough_within_its_window() -> None:
    assert judge(seen(EvidenceClass.SOFT, "63", 90, 80)).verdict is DeviceVerdict.HEALTHY
    assert judge(seen(EvidenceClass.SOFT, "63", 5000, 80, 70)).verdict is DeviceVerdict.HEALTHY
    assert judge(seen(EvidenceClass.SOFT, "63", 90, 80, 70)).verdict is DeviceVerdict.DEGRADED


def test_soft_evidence_asks_for_a_move_only_after_it_stood_for_the_whole_delay() -> None:
    young = judge(seen(EvidenceClass.SOFT, "63", 59.9, 2, 1))
    assert not young.move_wanted
    assert young.changes_at == pytest.approx(NOW.monotonic_seconds + 0.1)
    assert judge(seen(EvidenceClass.SOFT, "63", 60.0, 2, 1)).move_wanted


def test_more_sightings_than_are_listed_count_as_often_as_they_were_seen() -> None:
    often = EvidenceView(
        "nvml", "63", EvidenceClass.SOFT, 50, 900.0, 999.0, tuple(990.0 + i / 4 for i in range(32))
    )
    policy = Evidence(
        table=(EvidenceRule(source="nvml", code="63", evidence_class=EvidenceClass.SOFT, n=40),)
    )
    assert judge(often, policy=policy).verdict is DeviceVerdict.DEGRADED


def test_a_provider_that_cannot_be_asked_says_nothing_about_the_device() -> None:
    found = judge(observed=False)
    assert (found.verdict, found.move_wanted) == (DeviceVerdict.UNKNOWN, False)


def test_a_silent_agent_makes_its_devices_unknown_and_never_faulty() -> None:
    assert judge(connected=False).verdict is DeviceVerdict.UNKNOWN
    soft = judge(seen(EvidenceClass.SOFT, "63", 90, 80, 70), connected=False)
    assert (soft.verdict, soft.move_wanted) == (DeviceVerdict.UNKNOWN, False)


def test_what_was_seen_as_fatal_stays_fatal_when_the_agent_falls_silent() -> None:
    assert judge(seen(EvidenceClass.FATAL), connected=False).verdict is DeviceVerdict.FAULTY


def stuttering(hosts: int, apart: float) -> World:
    world = World()
    for number in range(1, 6):
        world.with_host(f"node-{number}", board=f"b{number}", rack="r1")
        world.with_engine(f"node-{number}", "acc-0", standby=number > 3)
    world.with_supernode(spares={"floor": 0}).with_group(instances=3).start().run(5)
    for number in range(1, hosts + 1):
        world.report(f"node-{number}", "acc-0", EvidenceClass.SOFT, code="63", count=3)
        world.run(apart, step=1.0)
    return world.run(90, step=1.0)


def test_the_same_soft_code_on_three_devices_at_once_moves_none_of_them() -> None:
    world = stuttering(3, apart=5)
    assert len(world.api.remaps) == 3, "the first binds only"
    device = world.operator.snapshot().agents["node-1"].devices[0]
    assert device.evidence


def test_the_same_soft_code_on_two_devices_moves_them() -> None:
    assert len(stuttering(2, apart=5).api.remaps) > 3


def test_the_same_soft_code_on_three_devices_one_after_the_other_moves_them() -> None:
    assert len(stuttering(3, apart=31).api.remaps) > 3
