"""Which operator epochs are believed: one object that names a far higher one leads nobody there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api import EngineSlot, KVNode, Remap
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.rules.epochs import MOST_EPOCHS_AHEAD, believed, operator_epochs_in, slot_epoch

MINE = 7
KEY = ObjectKey("inference", "chat-decode-0")
METADATA = {"name": KEY.name, "namespace": KEY.namespace}


def kvnode(epoch: int) -> KVNode:
    return KVNode.parse({"metadata": {"name": "node-1"}, "spec": {"operatorEpoch": epoch}})


def slot(epoch: int, under: int = 1) -> EngineSlot:
    spec = {"pdGroup": "chat", "role": "Decode", "instance": 0, "operatorEpoch": under}
    return EngineSlot.parse({"metadata": METADATA, "spec": spec | {"epoch": slot_epoch(epoch, 1)}})


def remap(epoch: int, under: int = 1) -> Remap:
    spec = {
        "slot": KEY.name,
        "to": [{"index": 0, "node": "node-1", "devices": ["d"]}],
        "kind": "Initial",
        "cause": "test",
        "operatorEpoch": under,
    }
    moment = {"firstEvidenceAt": "2026-01-02T03:04:05Z"}
    return Remap.parse({"metadata": METADATA, "spec": spec | moment | {"epoch": slot_epoch(epoch, 1)}})


def snapshot(at: int) -> Snapshot:
    """Objects that all name operator epoch `at`."""
    return Snapshot(
        Leadership(MINE, since=0.0, api_back_since=0.0),
        kvnodes={"node-1": kvnode(at)},
        slots={KEY: slot(at)},
        remaps={KEY: remap(at)},
    )


@pytest.mark.parametrize("at", [1, MINE, MINE + 1, MINE + MOST_EPOCHS_AHEAD])
def test_an_epoch_that_a_leader_can_have_reached_is_believed(at: int) -> None:
    known = snapshot(at)
    assert believed(known) is known
    assert set(operator_epochs_in(known)) == {at}


def test_objects_that_name_an_epoch_beyond_any_leader_are_there_and_cannot_be_read() -> None:
    found = believed(snapshot(MINE + MOST_EPOCHS_AHEAD + 1))
    assert [*found.kvnodes, *found.slots, *found.remaps] == []
    assert found.unreadable == {("KVNode", ObjectKey("", "node-1")), ("EngineSlot", KEY), ("Remap", KEY)}
    assert list(operator_epochs_in(found)) == []


def test_the_operator_epoch_of_a_slot_counts_as_much_as_that_of_its_own() -> None:
    beyond = MINE + MOST_EPOCHS_AHEAD + 1
    found = believed(replace(snapshot(1), slots={KEY: slot(1, beyond)}, remaps={KEY: remap(1, beyond)}))
    assert found.unreadable == {("EngineSlot", KEY), ("Remap", KEY)}
    assert set(found.kvnodes) == {"node-1"}
