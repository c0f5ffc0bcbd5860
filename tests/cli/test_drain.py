"""`kubectl kvpool drain` and `undrain`: the maintenance list of the Supernode that a node belongs to."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.controlplane import ControlPlane
from tests.cli.conftest import Plugin
from tests.cli.world import World, new_mark


@pytest.fixture
def world(kvpool_plane: ControlPlane, namespace: str) -> World:
    made = World(kvpool_plane, namespace, new_mark())
    made.put_node(1, devices=[{"id": "0", "verdict": "Healthy"}, {"id": "1", "verdict": "Healthy"}])
    return made


def maintenance(world: World) -> list[Any]:
    found = world.plane.admin.get("kvpool.dev/v1alpha1", "Supernode", world.supernode)
    entries: list[Any] = found["spec"].get("maintenance", [])
    return entries


def test_a_node_goes_on_its_supernodes_list_and_off_again(world: World, plugin: Plugin) -> None:
    world.put_supernode()
    node = world.node(1)
    ran = plugin("drain", node, "--reason", "fan")
    assert (ran.code, ran.out) == (
        0,
        f"{node} is now on the maintenance list of Supernode {world.supernode}\n",
    )
    (entry,) = maintenance(world)
    assert (entry["node"], entry.get("devices", []), entry["reason"]) == (node, [], "fan")
    assert plugin("drain", node).out.endswith("already\n")

    assert plugin("undrain", node).out.startswith(f"{node} is no longer on")
    assert maintenance(world) == []
    assert plugin("undrain", node).out.startswith(f"{node} was not on")


def test_devices_are_listed_one_by_one_and_a_whole_node_takes_their_place(
    world: World, plugin: Plugin
) -> None:
    world.put_supernode()
    node = world.node(1)
    assert plugin("drain", f"{node}/0").code == 0
    assert plugin("drain", f"{node}/1").code == 0
    assert maintenance(world)[0]["devices"] == ["0", "1"]
    assert plugin("undrain", f"{node}/0").code == 0
    assert maintenance(world)[0]["devices"] == ["1"]
    assert plugin("drain", node).code == 0
    assert maintenance(world)[0].get("devices", []) == []
    ran = plugin("undrain", f"{node}/1")
    assert ran.code == 2
    assert ran.err == f"error: node {node} is listed as a whole, not its device 1: undrain {node}\n"


def test_other_peoples_entries_stay(world: World, plugin: Plugin) -> None:
    world.put_supernode()
    other = world.put_node(2)
    assert plugin("drain", other, "--reason", "theirs").code == 0
    assert plugin("drain", world.node(1)).code == 0
    assert plugin("undrain", world.node(1)).code == 0
    assert [entry["node"] for entry in maintenance(world)] == [other]


def test_a_supernode_that_does_not_act_is_mentioned(world: World, plugin: Plugin) -> None:
    world.put_supernode(mode="Recommend")
    ran = plugin("drain", world.node(1))
    assert ran.code == 0
    assert "note: the Supernode is in mode Recommend" in ran.out


def test_a_node_without_a_supernode_an_unknown_node_and_an_unknown_device_are_refused(
    world: World, plugin: Plugin
) -> None:
    ran = plugin("drain", world.node(1))
    assert ran.code == 2
    assert f"node {world.node(1)} belongs to no Supernode" in ran.err
    ran = plugin("drain", "node-nowhere")
    assert ran.code == 2
    assert "node node-nowhere does not exist; the nodes are" in ran.err
    world.put_supernode()
    ran = plugin("drain", f"{world.node(1)}/7")
    assert ran.err == f"error: node {world.node(1)} has no device '7'; its devices are 0, 1\n"
    assert plugin("drain", f"{world.node(1)}/").code == 2
    assert maintenance(world) == []
