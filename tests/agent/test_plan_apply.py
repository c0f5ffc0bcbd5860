"""Steps towards a plan: a table of situations."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kvpool_agent.plan_apply import Look, Situation, StepKind, conflict, keeper_spec, next_steps, plan_by_name
from kvpool_agent.units import Finding, KeeperView, Reality, Record, RecordPhase, UnitPlan
from kvpool_keeper.contract import KeeperPhase, KeeperStatus, Release

BOOT = "this-boot"
UNIT = UnitPlan("inference.chat.dram.n0", 1, 4096, "tmpfs", numa_node=0)
HERE = Reality(exists=True, resident_bytes=4096, file_bytes=4096, device_inode="1:2")


def record(phase: RecordPhase, unit: UnitPlan = UNIT, **changes: Any) -> Record:  # noqa: ANN401 - fields of Record
    file = f"/state/units/{unit.key}/mem/segment"
    plain = Record(unit, phase, BOOT, (), 0, file, volatile=True, placement_bound=True)
    return dataclasses.replace(plain, **changes)


def keeper(phase: KeeperPhase = KeeperPhase.READY, *, alive: bool = True) -> KeeperView:
    return KeeperView(KeeperStatus(BOOT, 1, phase, 0, generation=1), alive)


def look(kept: Record, view: KeeperView | None = None, reality: Reality = HERE, *, told: bool = True) -> Look:
    return Look(reality, view or keeper(), keeper_spec(kept) if told else None)


def situation(
    planned: list[UnitPlan] | None,
    *held: tuple[Record, Look],
    **changes: Any,  # noqa: ANN401 - of Situation
) -> Situation:
    plain = Situation(
        planned=None if planned is None else plan_by_name(planned),
        records={kept.key: kept for kept, _ in held},
        looks={kept.key: seen for kept, seen in held},
        orphans=frozenset(),
        failing=frozenset(),
        hold=False,
        boot_id=BOOT,
    )
    return dataclasses.replace(plain, **changes)


def kinds(now: Situation) -> list[StepKind]:
    return [step.kind for step in next_steps(now)]


def test_a_new_unit_is_prepared() -> None:
    assert kinds(situation([UNIT])) == [StepKind.PREPARE]


@pytest.mark.parametrize(
    "changes",
    [{"hold": True}, {"failing": frozenset({UNIT.key})}],
    ids=["hold", "failed a moment ago"],
)
def test_a_unit_is_not_prepared_when_it_may_not_be(changes: dict[str, Any]) -> None:
    assert kinds(situation([UNIT], **changes)) == []


def test_without_a_plan_there_is_nothing_to_do() -> None:
    assert kinds(situation(None)) == []


def test_a_unit_that_is_to_be_released_is_never_prepared() -> None:
    assert kinds(situation([dataclasses.replace(UNIT, release=Release.NOW)])) == []


def test_an_object_without_record_is_adopted_before_anything_else() -> None:
    assert kinds(situation([UNIT], orphans=frozenset({UNIT.key}), hold=True)) == [StepKind.READOPT]


def test_a_prepared_unit_tells_its_keeper_then_is_bound_when_the_kernel_agrees() -> None:
    kept = record(RecordPhase.PREPARED)
    assert kinds(situation([UNIT], (kept, look(kept, told=False)))) == [StepKind.TELL]
    assert kinds(situation([UNIT], (kept, look(kept)))) == [StepKind.BIND]


@pytest.mark.parametrize(
    ("view", "reality"),
    [
        (keeper(KeeperPhase.ALLOCATING), HERE),
        (keeper(alive=False), HERE),
        (keeper(), dataclasses.replace(HERE, resident_bytes=4095)),
        (keeper(), dataclasses.replace(HERE, file_bytes=8192)),
    ],
    ids=["allocating", "silent keeper", "pages missing", "another size"],
)
def test_a_unit_is_not_bound_on_half_a_proof(view: KeeperView, reality: Reality) -> None:
    kept = record(RecordPhase.PREPARED)
    assert kinds(situation([UNIT], (kept, look(kept, view, reality)))) == []


def test_a_bound_unit_that_is_planned_needs_nothing() -> None:
    kept = record(RecordPhase.BOUND)
    assert kinds(situation([UNIT], (kept, look(kept)))) == []


@pytest.mark.parametrize("planned", [None, []], ids=["no plan yet", "not named"])
def test_a_bound_unit_that_no_plan_names_is_kept(planned: list[UnitPlan] | None) -> None:
    kept = record(RecordPhase.BOUND)
    assert kinds(situation(planned, (kept, look(kept)))) == []


def test_a_release_is_told_and_waited_for_and_then_removed() -> None:
    kept = record(RecordPhase.BOUND)
    wanted = dataclasses.replace(UNIT, release=Release.DRAIN)
    (told,) = next_steps(situation([wanted], (kept, look(kept))))
    assert told.kind is StepKind.TELL
    assert told.spec is not None
    assert told.spec.release is Release.DRAIN
    releasing = record(RecordPhase.BOUND, wanted)
    assert kinds(situation([wanted], (releasing, look(releasing)))) == []
    given_back = look(releasing, keeper(KeeperPhase.RELEASED))
    assert kinds(situation([wanted], (releasing, given_back))) == [StepKind.REMOVE]


def test_a_later_generation_drains_the_earlier_one_and_waits_for_it() -> None:
    kept = record(RecordPhase.BOUND)
    later = dataclasses.replace(UNIT, generation=2)
    (step,) = next_steps(situation([later], (kept, look(kept))))
    assert step.kind is StepKind.TELL
    assert step.spec is not None
    assert (step.spec.generation, step.spec.release) == (1, Release.DRAIN)


def test_an_earlier_generation_than_what_is_held_changes_nothing() -> None:
    later = dataclasses.replace(UNIT, generation=2)
    kept = record(RecordPhase.BOUND, later)
    assert kinds(situation([UNIT], (kept, look(kept)))) == []


def test_released_is_said_until_the_plan_lets_go_of_it() -> None:
    kept = record(RecordPhase.RELEASED)
    wanted = dataclasses.replace(UNIT, release=Release.NOW)
    assert kinds(situation([wanted], (kept, look(kept)))) == []
    assert kinds(situation(None, (kept, look(kept)))) == []
    assert kinds(situation([], (kept, look(kept)))) == [StepKind.FORGET]


@pytest.mark.parametrize(
    ("changes", "reality"),
    [
        ({"boot_id": "an-earlier-boot"}, HERE),
        ({}, Reality(exists=False, findings=(Finding("MountGone", "nothing is mounted"),))),
        ({}, dataclasses.replace(HERE, file_bytes=-1)),
    ],
    ids=["another boot", "no mount", "no file"],
)
def test_memory_that_is_gone_is_lost(changes: dict[str, Any], reality: Reality) -> None:
    kept = record(RecordPhase.BOUND, **changes)
    (step,) = next_steps(situation([UNIT], (kept, look(kept, reality=reality))))
    assert step.kind is StepKind.LOSE
    assert step.message


def test_a_file_outlives_the_boot() -> None:
    kept = record(RecordPhase.BOUND, boot_id="an-earlier-boot", volatile=False)
    assert kinds(situation([UNIT], (kept, look(kept)))) == []


def test_a_lost_unit_waits_for_a_new_generation() -> None:
    kept = record(RecordPhase.LOST)
    gone = look(kept, keeper(alive=False), Reality(exists=False))
    assert kinds(situation([UNIT], (kept, gone))) == []


def test_a_changed_size_without_a_new_generation_is_named_and_not_followed() -> None:
    kept = record(RecordPhase.BOUND)
    larger = dataclasses.replace(UNIT, size_bytes=8192)
    assert kinds(situation([larger], (kept, look(kept)))) == []
    assert "size_bytes 4096; 8192 needs a new generation" in conflict(plan_by_name([larger]), kept)


UNSEEN = Reality(exists=True, unseen=True, findings=(Finding("CannotLook", "Input/output error"),))


def test_a_unit_whose_medium_cannot_be_seen_is_neither_lost_nor_removed() -> None:
    bound = record(RecordPhase.BOUND)
    assert kinds(situation([UNIT], (bound, look(bound, reality=UNSEEN)))) == []
    released = dataclasses.replace(UNIT, release=Release.NOW)
    gone = keeper(KeeperPhase.RELEASED)
    for phase in (RecordPhase.BOUND, RecordPhase.RELEASING):
        kept = record(phase, released)
        assert kinds(situation([released], (kept, look(kept, gone)))) == [StepKind.REMOVE]
        assert kinds(situation([released], (kept, look(kept, gone, UNSEEN)))) == []
