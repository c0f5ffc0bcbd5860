"""How units are reported: one view for each name, whatever else of that name is on the node."""

from __future__ import annotations

import dataclasses

from kvpool.api.kvnode import UnitPhase
from kvpool_agent.unit_view import unit_views
from kvpool_agent.units import RecordPhase
from tests.agent.test_plan_apply import UNIT, look, record, situation

NEXT = dataclasses.replace(UNIT, generation=2)


def test_a_find_of_an_older_generation_is_a_finding_of_the_planned_unit() -> None:
    now = situation([NEXT], orphans=frozenset({UNIT.key}))
    (view,) = unit_views(now, {}, 0)
    assert (view.name, view.generation, view.phase) == (UNIT.name, 2, UnitPhase.PENDING)
    assert [finding.reason for finding in view.findings] == ["Quarantined"]
    assert not any(finding.degrades for finding in view.findings)


def test_of_a_recorded_and_a_planned_generation_the_recorded_one_speaks() -> None:
    held = record(RecordPhase.BOUND)
    (view,) = unit_views(situation([NEXT], (held, look(held))), {}, 0)
    assert view.generation == 1


def test_of_two_recorded_generations_the_newer_one_speaks() -> None:
    old, new = record(RecordPhase.RELEASING), record(RecordPhase.BOUND, NEXT)
    (view,) = unit_views(situation([NEXT], (old, look(old)), (new, look(new))), {}, 0)
    assert (view.generation, view.phase) == (2, UnitPhase.BOUND)


def test_a_find_that_nothing_else_speaks_of_is_reported_by_itself() -> None:
    (view,) = unit_views(situation([], orphans=frozenset({UNIT.key})), {}, 0)
    assert view.phase == UnitPhase.DEGRADED
