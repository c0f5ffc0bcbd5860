"""`kubectl kvpool explain`: the operator's own reasons, from a live cluster's objects."""

from __future__ import annotations

import pytest

from devcluster.controlplane import ControlPlane
from tests.cli.conftest import Plugin, Ran, own, put
from tests.cli.world import FATAL, World, claim, new_mark


@pytest.fixture
def world(kvpool_plane: ControlPlane, namespace: str) -> World:
    return World(kvpool_plane, namespace, new_mark())


def codes(ran: Ran, about: str) -> list[str]:
    return [row["code"] for row in ran.document["reasons"] if row["about"] == about]


def bound_slot(world: World, **device: object) -> None:
    """Two nodes with a device each; the slot sits on the first."""
    first = {"id": "0", "verdict": "Healthy", "holder": "uid-1", **device}
    world.put_node(1, devices=[first], claims=[claim(world.namespace)])
    world.put_node(2)
    world.put_supernode()
    put(world.plane, world.pool("1Gi", mode="Observe"))
    world.put_group()
    world.put_slot(1)


def test_a_pool_larger_than_its_budget_is_explained_with_both_figures(world: World, plugin: Plugin) -> None:
    world.put_node(1)
    world.put_budget(per_node="64Gi")
    put(world.plane, world.pool("1Ti"))
    ran = plugin("explain", "pool/chat", "-n", world.namespace, "-o", "json")
    (row,) = [row for row in ran.document["reasons"] if row["about"].startswith("KVPool")]
    assert row["code"] == "NotEnoughRoom"
    assert "1Ti" in row["message"]
    assert "64Gi" in row["message"]
    assert ran.document["nextSteps"] == []


def test_a_pool_that_fits_shows_the_units_that_would_be_bound(world: World, plugin: Plugin) -> None:
    name = world.put_node(1)
    world.put_budget()
    put(world.plane, world.pool("16Gi"))
    ran = plugin("explain", "kvp/chat", "-n", world.namespace, "-o", "json")
    steps = {(step["about"], step["text"]) for step in ran.document["nextSteps"]}
    assert (f"KVNode {name}", f"bind 16Gi of DRAM on NUMA node 0 for {world.namespace}/chat") in steps


def test_a_slot_that_serves_holds_still_and_says_why(world: World, plugin: Plugin) -> None:
    bound_slot(world)
    ran = plugin("explain", "slot/chat-decode-0", "-n", world.namespace)
    text = " ".join(ran.out.split())
    assert "Alive: it holds its lease" in text
    assert "Healthy: nothing speaks against it" in text
    assert "none: it holds still" in text
    assert ran.code == 0


def test_a_slot_on_a_faulty_device_shows_weight_0_and_what_stands_in_the_way(
    world: World, plugin: Plugin
) -> None:
    bound_slot(world, verdict="Faulty", evidence=[FATAL])
    ran = plugin("explain", "slot/chat-decode-0", "-n", world.namespace, "-o", "json")
    (weight,) = ran.document["weights"]
    assert (weight["weight"], weight["code"]) == (0, "FatalEvidence")
    (seat,) = ran.document["seats"]
    assert seat["device"].startswith("Faulty: nvml reported 48 (Fatal)")
    assert codes(ran, f"EngineSlot {world.namespace}/chat-decode-0")


def test_a_node_shows_its_devices_owners_and_why_they_are_no_spares(world: World, plugin: Plugin) -> None:
    bound_slot(world, verdict="Faulty", evidence=[FATAL])
    ran = plugin("explain", f"node/{world.node(1)}", "-o", "json")
    (device,) = ran.document["devices"]
    assert device["owner"] == f"{world.namespace}/chat-decode-0"
    assert device["noSpare"] == "claimed"
    assert ran.document["hosts"][0]["state"] == "Alive"
    (device,) = plugin("explain", f"kvn/{world.node(2)}", "-o", "json").document["devices"]
    assert device["noSpare"] == ""


def test_a_paused_cluster_says_what_it_withholds(world: World, plugin: Plugin) -> None:
    world.put_node(1)
    world.put_budget()
    put(world.plane, world.pool("16Gi"))
    assert plugin("pause", "--all").code == 0
    ran = plugin("explain", "pool/chat", "-n", world.namespace, "-o", "json")
    (held,) = [row for row in ran.document["withheld"] if row["about"].startswith("KVPool")]
    assert held["code"] == "Paused"
    assert "16Gi of DRAM" in held["action"]
    assert ran.document["nextSteps"] == []


@pytest.mark.parametrize("kind", ["pdg", "supernode", "budget"])
def test_every_kind_people_write_can_be_explained(world: World, plugin: Plugin, kind: str) -> None:
    bound_slot(world)
    world.put_budget()
    name = {"pdg": "chat", "supernode": world.supernode, "budget": f"budget-{world.mark}"}[kind]
    ran = plugin("explain", f"{kind}/{name}", "-n", world.namespace)
    assert ran.code == 0, ran.err
    assert f"{name}, mode Enforce" in ran.out
    assert max(len(line) for line in ran.out.splitlines()) <= 100


def test_an_object_that_is_elsewhere_is_pointed_to(world: World, plugin: Plugin) -> None:
    put(world.plane, world.pool("1Gi"))
    ran = plugin("explain", "pool/chat", "-n", "default")
    assert ran.code == 2
    assert "KVPool default/chat does not exist; one of that name is in namespace" in ran.err
    ran = plugin("explain", "pool/nobody", "-n", world.namespace)
    assert ran.err == f"error: KVPool {world.namespace}/nobody does not exist\n"


def group_of_workload(world: World, kind: str) -> None:
    decode = {"workloadRef": {"kind": kind, "name": "decode"}}
    spec = {"mode": "Enforce", "poolRef": {"name": "chat"}, "decode": decode}
    put(world.plane, world.pool("1Gi", mode="Observe"))
    put(world.plane, own("PDGroup", "chat", spec, world.namespace))


def test_the_pods_of_a_workload_are_found_through_its_scale(world: World, plugin: Plugin) -> None:
    labels = {"app": "decode"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "engine", "image": "engine"}]},
    }
    meta = {"name": "decode", "namespace": world.namespace}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    put(world.plane, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "labels": labels},
        "spec": template["spec"],
    }
    put(world.plane, pod)
    world.put_node(1)
    group_of_workload(world, "Deployment")
    ran = plugin("explain", "pdg/chat", "-n", world.namespace, "-o", "json")
    steps = [(step["about"], step["text"]) for step in ran.document["nextSteps"]]
    assert steps == [(f"EngineSlot {world.namespace}/chat-decode-0", "create the slot")]


def test_a_workload_that_cannot_be_scaled_is_the_reason_why_nothing_happens(
    world: World, plugin: Plugin
) -> None:
    group_of_workload(world, "StatefulSet")
    ran = plugin("explain", "pdg/chat", "-n", world.namespace, "-o", "json")
    assert codes(ran, f"PDGroup {world.namespace}/chat") == ["WorkloadNotScalable"]
    assert ran.document["nextSteps"] == []
