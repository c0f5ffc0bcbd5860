"""People edit what the operator writes: nothing stops for it, and what it cost is made good."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster.rest import JsonObject
from tests.harness.waiting import wait_until
from tests.system.failover.manifests import API_VERSION, NAMESPACE
from tests.system.failover.world import FailoverWorld, serves

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-hand-edits")]

FAR_EPOCH = 2**42 - 1
"""The highest that the schema takes."""
EPOCHS_OF_THIS_TEST = 2**20 * 1000


@pytest.fixture
def strays(world: FailoverWorld) -> Iterator[None]:
    """A node, a slot and a move that nobody but a person has written, each of an epoch far ahead."""
    for kind, name, spec in STRAYS:
        namespace = {} if kind == "KVNode" else {"namespace": NAMESPACE}
        metadata: JsonObject = {"name": name, **namespace}
        world.api.create({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})
    yield
    for kind, name, _ in STRAYS:
        world.api.delete(API_VERSION, kind, name, None if kind == "KVNode" else NAMESPACE)


STRAYS: tuple[tuple[str, str, JsonObject], ...] = (
    ("KVNode", "nobody", {"operatorEpoch": FAR_EPOCH}),
    (
        "EngineSlot",
        "nobody",
        {"operatorEpoch": FAR_EPOCH, "pdGroup": "nobody", "role": "Decode", "instance": 0},
    ),
    (
        "Remap",
        "nobody",
        {
            "operatorEpoch": FAR_EPOCH,
            "slot": "nobody",
            "to": [{"index": 0, "node": "nobody", "devices": ["d"]}],
            "epoch": 2**62 - 1,
            "kind": "Initial",
            "cause": "by hand",
            "firstEvidenceAt": "2026-01-02T03:04:05Z",
        },
    ),
)


@pytest.mark.usefixtures("strays")
def test_a_slot_moves_whatever_epochs_a_person_wrote_into_other_objects(world: FailoverWorld) -> None:
    name, left = world.a_slot()
    before = world.epochs()[name]
    world.break_device(left)
    wait_until(lambda: world.epochs()[name] > before and serves(world.slot(name)), 30, "the slot to serve")
    assert world.epochs()[name] < EPOCHS_OF_THIS_TEST


@pytest.mark.usefixtures("strays")
def test_a_new_leader_rises_above_no_epoch_that_a_person_wrote(world: FailoverWorld) -> None:
    world.replace_operator()
    name, left = world.a_slot()
    before = world.epochs()[name]
    world.break_device(left)
    wait_until(lambda: world.epochs()[name] > before and serves(world.slot(name)), 30, "the slot to serve")
    assert world.epochs()[name] < EPOCHS_OF_THIS_TEST


def test_a_slot_whose_kvnode_is_deleted_serves_again_under_a_new_epoch(world: FailoverWorld) -> None:
    name, node = world.a_slot()
    before = world.epochs()[name]
    world.api.delete(API_VERSION, "KVNode", node)
    wait_until(lambda: world.epochs()[name] > before and serves(world.slot(name)), 90, "the slot to serve")
    (remap,) = world.remaps(name, before)
    assert "the claim is gone" in remap["spec"]["cause"]
