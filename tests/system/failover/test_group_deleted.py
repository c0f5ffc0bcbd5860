"""A group is deleted: its outputs stay as they are, or go with it, as `routing.onDelete` said last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.neighbours.traefik import GATEWAY_API
from devcluster.rest import JsonObject
from kvpool.api import labels
from tests.harness.garbage import wait_for_collector
from tests.harness.waiting import wait_until
from tests.system.failover import manifests
from tests.system.failover.in_and_out import OUTPUTS, SLICES, add_outputs, in_service, labelled
from tests.system.failover.manifests import API_VERSION, GROUP, NAMESPACE
from tests.system.failover.world import NODES, OUTPUT, FailoverWorld, stays

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-group-deleted")]

ROUTE = f"{GROUP}-{OUTPUT}"
FOLLOW_SECONDS = 20.0
FROZEN_SECONDS = 3.0


@pytest.fixture(scope="module")
def outputs(shared_world: FailoverWorld) -> FailoverWorld:
    """The group has an output of each type."""
    add_outputs(shared_world)
    return shared_world


@pytest.fixture
def group(outputs: FailoverWorld, world: FailoverWorld) -> Iterator[FailoverWorld]:
    """The world, whose group exists again afterwards, as it was."""
    wait_until(lambda: carried(world) == (100, 100), FOLLOW_SECONDS, "the route")
    wait_until(lambda: in_service(world) == labelled(world) == seated(world), FOLLOW_SECONDS, "the outputs")
    yield world
    create_group(world)


def create_group(world: FailoverWorld) -> None:
    """The group as every test finds it."""
    wanted = manifests.group(world.gateway.parent_ref, port=world.engine_port, outputs=OUTPUTS)
    if world.api.find(API_VERSION, "PDGroup", GROUP, NAMESPACE) is None:
        world.api.create(wanted)


def delete_group(world: FailoverWorld) -> None:
    world.api.delete(API_VERSION, "PDGroup", GROUP, NAMESPACE)
    gone = lambda: world.api.find(API_VERSION, "PDGroup", GROUP, NAMESPACE) is None  # noqa: E731 - read once
    wait_until(gone, FOLLOW_SECONDS, "the group to be gone")


def seated(world: FailoverWorld) -> set[str]:
    return set(world.seats().values())


def carried(world: FailoverWorld) -> tuple[int, ...]:
    """The weights in the route; empty without one."""
    route = world.api.find(GATEWAY_API, "HTTPRoute", ROUTE, NAMESPACE)
    rules = route["spec"]["rules"][:1] if route is not None else []
    return tuple(backend["weight"] for rule in rules for backend in rule.get("backendRefs", []))


def objects(world: FailoverWorld) -> list[JsonObject]:
    """Everything that was written for the group's outputs and slots."""
    found = [world.api.find(GATEWAY_API, "HTTPRoute", ROUTE, NAMESPACE)]
    found += [world.api.find("discovery.k8s.io/v1", "EndpointSlice", SLICES, NAMESPACE)]
    for version, kind in (("v1", "Service"), ("discovery.k8s.io/v1", "EndpointSlice")):
        found += world.api.list(version, kind, NAMESPACE, label_selector=labels.SLOT)
    return [thing for thing in (*found, *world.slots().values()) if thing is not None]


def owners(world: FailoverWorld) -> set[tuple[str, ...]]:
    """The UIDs that own them, as they occur."""
    return {
        tuple(owner["uid"] for owner in thing["metadata"].get("ownerReferences", []))
        for thing in objects(world)
    }


def test_a_deleted_group_leaves_its_last_weights_and_another_of_its_name_goes_on_with_them(
    group: FailoverWorld,
) -> None:
    world = group
    epochs, nodes = world.epochs(), seated(world)
    remaps = world.api.list(API_VERSION, "Remap", NAMESPACE)
    with world.requests() as traffic:
        delete_group(world)
        stays(
            lambda: carried(world) == (100, 100) and in_service(world) == labelled(world) == nodes,
            FROZEN_SECONDS,
            "what the outputs carry",
        )
        create_group(world)
        world.settle()
    assert all(sent.succeeded for sent in traffic.sent)
    assert len(traffic.sent) > 60 * FROZEN_SECONDS / 2
    assert world.epochs() == epochs
    assert len(world.api.list(API_VERSION, "Remap", NAMESPACE)) == len(remaps)


def test_an_edited_on_delete_is_followed_and_everything_goes_with_the_group(group: FailoverWorld) -> None:
    world = group
    assert owners(world) == {()}
    wait_for_collector(world.api, API_VERSION, "PDGroup", NAMESPACE)
    change = {"spec": {"routing": {"onDelete": "Remove"}}}
    uid = world.api.patch(API_VERSION, "PDGroup", GROUP, change, NAMESPACE)["metadata"]["uid"]
    wait_until(lambda: owners(world) == {(uid,)}, FOLLOW_SECONDS, "everything to be the group's own")
    delete_group(world)
    wait_until(lambda: not objects(world), FOLLOW_SECONDS, "routes, slices, Services and slots to go")
    wait_until(lambda: not labelled(world), FOLLOW_SECONDS, "labels to be taken off")
    wait_until(
        lambda: not any(world.kvnode(node)["spec"].get("claims") for node in NODES),
        FOLLOW_SECONDS,
        "devices to be given back",
    )
    assert {world.engine_health(node) for node in NODES} == {("standby", 0)}


def test_an_on_delete_that_is_taken_back_keeps_everything(group: FailoverWorld) -> None:
    world = group
    epochs = world.epochs()
    for word, owned in (("Remove", True), ("FreezeLast", False)):
        change = {"spec": {"routing": {"onDelete": word}}}
        uid = world.api.patch(API_VERSION, "PDGroup", GROUP, change, NAMESPACE)["metadata"]["uid"]
        wanted = {(uid,)} if owned else {()}
        wait_until(lambda: owners(world) == wanted, FOLLOW_SECONDS, f"owners under {word}")  # noqa: B023 - awaited here
    delete_group(world)
    stays(lambda: world.epochs() == epochs and carried(world) == (100, 100), FROZEN_SECONDS, "all")
