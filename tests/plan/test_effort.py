"""What a plan of failovers costs: slots are sorted once, and no pod is looked at by every pair of groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import world
from benchmarks.measures import Said, gather, loaded
from kvpool.api.common import LabelSelector
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot
from kvpool.plan.failover import failover_plan
from kvpool.plan.group_slots import slots_of

GROUPS = 12
NODES = GROUPS * world.NODES_EACH


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return gather(loaded(NODES), Said(world.agents(NODES), world.acks(NODES)))


def test_each_group_has_its_own_slots_by_name(snapshot: Snapshot) -> None:
    assert len(snapshot.groups) == GROUPS
    for key, group in snapshot.groups.items():
        named = [slot.metadata.name for slot in slots_of(snapshot, group)]
        assert named == sorted(f"{key.name}-decode-{number}" for number in range(world.NODES_EACH))


def test_groups_of_one_name_in_two_namespaces_share_no_slot(snapshot: Snapshot) -> None:
    first = next(iter(snapshot.groups.values()))
    elsewhere = first.model_copy(
        update={"metadata": first.metadata.model_copy(update={"namespace": "training"})}
    )
    assert slots_of(snapshot, elsewhere) == ()
    key, slot = next(iter(snapshot.slots.items()))
    moved = slot.model_copy(update={"metadata": slot.metadata.model_copy(update={"namespace": "training"})})
    both = replace(snapshot, slots={**snapshot.slots, ObjectKey("training", key.name): moved})
    assert slots_of(both, elsewhere) == (moved,)
    assert len(slots_of(both, first)) == world.NODES_EACH


def test_a_snapshot_that_is_replaced_knows_the_slots_that_it_has_now(snapshot: Snapshot) -> None:
    group = next(iter(snapshot.groups.values()))
    gone = slots_of(snapshot, group)[0]
    left = {key: slot for key, slot in snapshot.slots.items() if slot is not gone}
    assert slots_of(replace(snapshot, slots=left), group) == slots_of(snapshot, group)[1:]


def test_slots_are_sorted_once_for_all_groups(snapshot: Snapshot) -> None:
    assert snapshot.slots_by_group is snapshot.slots_by_group


def test_no_pod_is_looked_at_by_every_pair_of_groups(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0
    matches = LabelSelector.matches

    def counted(selector: LabelSelector, labels: dict[str, str]) -> bool:
        nonlocal asked
        asked += "app" in labels
        return matches(selector, labels)

    monkeypatch.setattr(LabelSelector, "matches", counted)
    failover_plan(snapshot, world.NOW)
    engines = sum("app" in pod.labels for pod in snapshot.pods.values())
    assert GROUPS * engines <= asked < 4 * GROUPS * engines
