"""Engines as Pods: seats follow kubelet's devices, and a node that died is not waited for."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from demo.neighbours.pods import EnginePod
from devcluster.rest import JsonObject
from tests.e2e.conftest import POOL
from tests.e2e.site import RealSite
from tests.harness.objects import KVPOOL, NAMESPACE
from tests.harness.waiting import wait_until

SEATED_SECONDS = 30.0
BOUND_BY_LEASE_SECONDS = 12.0
MOVE_SECONDS = 60.0
GROUP = "chat"
ENGINES = {"decode-a": ("decode", "node3"), "standby-1": ("standby", "node2")}
"""Role and node; neither node is the store's."""


def _group(*, instances: int, attach: str) -> JsonObject:
    decode: JsonObject = {
        "podSelector": {"matchLabels": {"role": "decode"}},
        "port": 8000,
        "instances": instances,
        "attach": attach,
    }
    if attach == "Standby":
        decode["standby"] = {"podSelector": {"matchLabels": {"role": "standby"}}}
    return {
        "mode": "Enforce",
        "poolRef": {"name": POOL},
        "supernodeRef": {"name": "sn-a"},
        "decode": decode,
        "routing": {
            "onDelete": "Remove",
            "outputs": [{"name": "labels", "type": "PodLabel", "podLabel": {"key": "kv-serving"}}],
        },
    }


@pytest.fixture
def engines(site: RealSite) -> Iterator[RealSite]:
    """Mock engines: decode-a on node3, a warm one behind it on node2; both gone in the end."""
    for name, (role, node) in ENGINES.items():
        site.admin.create(EnginePod(name, role, node).manifest(NAMESPACE))
    yield site
    site.admin.delete(KVPOOL, "PDGroup", GROUP, NAMESPACE)
    for name in ENGINES:
        site.admin.delete("v1", "Pod", name, NAMESPACE, {"gracePeriodSeconds": 0})
    wait_until(lambda: not _slots(site), MOVE_SECONDS, "the group's slots to be gone")


def _slots(site: RealSite) -> list[JsonObject]:
    return site.admin.list(KVPOOL, "EngineSlot", NAMESPACE)


def _seated(site: RealSite, pod: str) -> JsonObject | None:
    """The slot that a Pod serves, once it does."""
    for slot in _slots(site):
        attached = slot.get("status", {}).get("attached") or {}
        if attached.get("podName") == f"{NAMESPACE}/{pod}" and attached["epoch"] == slot["spec"]["epoch"]:
            return slot
    return None


def _serving(site: RealSite) -> tuple[JsonObject, str, str]:
    """The one slot, the engine that serves it - whichever of the two was heard first - and the other one."""

    def found() -> tuple[JsonObject, str, str] | None:
        for name in ENGINES:
            slot = _seated(site, name)
            if slot is not None:
                (other,) = set(ENGINES) - {name}
                return slot, name, other
        return None

    serving = wait_until(found, SEATED_SECONDS, "an engine to serve")
    assert serving is not None
    return serving


def test_a_seat_follows_the_device_that_kubelet_gave_to_a_pod(engines: RealSite) -> None:
    engines.apply("PDGroup", GROUP, _group(instances=1, attach="Observe"), NAMESPACE)
    slot = wait_until(lambda: _seated(engines, "decode-a"), SEATED_SECONDS, "decode-a to be seen on its seat")
    assert slot is not None
    (seat,) = slot["spec"]["seats"]
    assert seat["node"] == "node3"
    assert seat["devices"] == engines.devices_given("decode-a")


def test_a_node_that_dies_for_good_is_left_by_its_lease_and_its_pods_are_not_waited_for(
    engines: RealSite,
) -> None:
    engines.apply("PDGroup", GROUP, _group(instances=1, attach="Standby"), NAMESPACE)
    slot, engine, other = _serving(engines)
    name, epoch, node = slot["metadata"]["name"], slot["spec"]["epoch"], ENGINES[engine][1]
    died = time.monotonic()
    engines.cluster.power_cut(node)
    try:
        moved = wait_until(lambda: _moved(engines, name, epoch), MOVE_SECONDS, "the slot to be bound anew")
        bound_seconds = time.monotonic() - died
        assert moved is not None
        assert moved["spec"]["seats"][0]["node"] == ENGINES[other][1]
        assert moved["spec"]["fencedBy"]["proof"] == "GuardExpiry"
        wait_until(lambda: _seated(engines, other), SEATED_SECONDS, f"{other} to serve")
        dead = engines.admin.get("v1", "Pod", engine, NAMESPACE)
        assert dead["spec"]["nodeName"] == node, "the dead node's Pod is still there: nobody waited for it"
        assert bound_seconds <= BOUND_BY_LEASE_SECONDS, f"bound {bound_seconds:.1f} s after the power cut"
    finally:
        engines.cluster.start_node(node)
        engines.equip(node)
        engines.cluster.wait_ready([node])


def _moved(site: RealSite, name: str, epoch: int) -> JsonObject | None:
    slot = site.admin.get(KVPOOL, "EngineSlot", name, NAMESPACE)
    return slot if slot["spec"]["epoch"] > epoch and slot["spec"].get("seats") else None


def test_operators_deleted_in_the_middle_of_a_move_make_it_once(engines: RealSite) -> None:
    engines.apply("PDGroup", GROUP, _group(instances=1, attach="Standby"), NAMESPACE)
    slot, engine, other = _serving(engines)
    name, epoch, node = slot["metadata"]["name"], slot["spec"]["epoch"], ENGINES[engine][1]
    (device,) = engines.devices_given(engine)
    engines.accelerators[node].fail(device)
    try:
        wait_until(lambda: _remaps(engines, name), SEATED_SECONDS, "a move to be opened")
        for operator in engines.pods_of("operator"):
            engines.delete_pod(operator, grace_seconds=0)
        moved = wait_until(lambda: _moved(engines, name, epoch), MOVE_SECONDS, "the slot to be bound anew")
        wait_until(lambda: _seated(engines, other), SEATED_SECONDS, f"{other} to serve")
        assert moved is not None
        assert len(_remaps(engines, name)) == 1, "one move, whoever finished it"
        (remap,) = _remaps(engines, name)
        assert moved["spec"]["epoch"] == remap["spec"]["epoch"]
        assert [claim["slot"] for claim in _claims(engines)] == [f"{NAMESPACE}/{name}"]
    finally:
        engines.equip(node)


def _remaps(site: RealSite, slot: str) -> list[JsonObject]:
    """Moves of a slot that leave a seat: its first binding is none."""
    found = site.admin.list(KVPOOL, "Remap", NAMESPACE)
    return [one for one in found if one["spec"]["slot"].endswith(slot) and one["spec"]["kind"] != "Initial"]


def _claims(site: RealSite) -> list[JsonObject]:
    return [claim for node in site.admin.list(KVPOOL, "KVNode") for claim in node["spec"].get("claims", [])]
