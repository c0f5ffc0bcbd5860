"""Engines as Pods: seats follow kubelet's devices, moves outlive operators, the dead are not waited for."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from demo.neighbours.pods import DEVICES_FILE, IMAGE, RESOURCE, EnginePod
from devcluster.rest import JsonObject
from kvpool.api.remap import RemapPhase
from tests.e2e.conftest import POOL
from tests.e2e.keepers import disk_keeper, memory_keeper
from tests.e2e.kernel import mappings
from tests.e2e.numbers import Numbers
from tests.e2e.operators import kill_operators
from tests.e2e.site import SYSTEM, RealSite
from tests.e2e.stored import Stored
from tests.harness.objects import KVPOOL, NAMESPACE
from tests.harness.waiting import wait_until

SEATED_SECONDS = 30.0
BOUND_BY_LEASE_SECONDS = 12.0
BOUND_BY_NEW_LEADER_SECONDS = 24.0
"""When the leader was on the node as well: another one takes over, and believes no expiry before a lease and
what peers' words are worth have passed."""
MOVE_SECONDS = 60.0
GROUP = "chat"
LABEL = "kv-serving"
ATTACH_SECONDS = 8.0
"""Of a standby that is caught while it takes its seat: longer than operators need to die."""
ENGINES = {"decode-a": ("decode", "node3"), "standby-1": ("standby", "node2")}
"""Role and node; neither node is the store's."""


def _group(*, attach: str) -> JsonObject:
    decode: JsonObject = {
        "podSelector": {"matchLabels": {"role": "decode"}},
        "port": 8000,
        "instances": 1,
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
            "outputs": [{"name": "labels", "type": "PodLabel", "podLabel": {"key": LABEL}}],
        },
    }


def _delete_pod(site: RealSite, name: str) -> None:
    site.admin.delete("v1", "Pod", name, NAMESPACE, {"gracePeriodSeconds": 0})
    wait_until(
        lambda: site.admin.find("v1", "Pod", name, NAMESPACE) is None, SEATED_SECONDS, f"{name} to be gone"
    )


@pytest.fixture
def attach_seconds() -> float:
    """How long a warm engine needs to take a seat."""
    return 0.5


@pytest.fixture
def engines(site: RealSite, attach_seconds: float) -> Iterator[RealSite]:
    """Mock engines: decode-a on node3, a warm one behind it on node2; both gone in the end."""
    try:
        for name, (role, node) in ENGINES.items():
            pod = EnginePod(name, role, node, attach_seconds=attach_seconds)
            site.admin.create(pod.manifest(NAMESPACE))
        yield site
    finally:
        site.admin.delete(KVPOOL, "PDGroup", GROUP, NAMESPACE)
        for name in ENGINES:
            _delete_pod(site, name)
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
            if slot is not None and LABEL in _labels(site, name):
                (other,) = set(ENGINES) - {name}
                return slot, name, other
        return None

    serving = wait_until(found, SEATED_SECONDS, "an engine to serve, and its Pod to say so")
    assert serving is not None
    return serving


def _labels(site: RealSite, pod: str) -> JsonObject:
    labels: JsonObject = site.admin.get("v1", "Pod", pod, NAMESPACE)["metadata"]["labels"]
    return labels


def _holders(site: RealSite, node: str) -> dict[str, str]:
    """UID of the Pod that holds each device of a node, by kvpool's word; free devices are left out."""
    devices = site.admin.get(KVPOOL, "KVNode", node)["status"]["devices"]
    return {one["id"]: one["holder"] for one in devices if one["holder"]}


def _uid(site: RealSite, pod: str) -> str:
    uid: str = site.admin.get("v1", "Pod", pod, NAMESPACE)["metadata"]["uid"]
    return uid


def test_a_seat_follows_the_devices_that_kubelet_gives_to_a_pod(engines: RealSite) -> None:
    site, (role, node) = engines, ENGINES["decode-a"]
    file = json.loads((site.cluster.root(node) / DEVICES_FILE.lstrip("/")).read_text())
    assert not any("holderPodUid" in device for device in file["devices"]), "kubelet alone knows who holds"
    site.apply("PDGroup", GROUP, _group(attach="Observe"), NAMESPACE)
    first = wait_until(lambda: _seated(site, "decode-a"), SEATED_SECONDS, "decode-a to be seen on its seat")
    assert first is not None
    before = site.devices_given("decode-a")
    assert first["spec"]["seats"][0]["devices"] == before
    wait_until(
        lambda: _holders(site, node) == dict.fromkeys(before, _uid(site, "decode-a")),
        SEATED_SECONDS,
        "the holder to be known from kubelet",
    )
    _delete_pod(site, "decode-a")
    site.admin.create(_occupier(node))
    try:
        wait_until(
            lambda: _holders(site, node) == dict.fromkeys(before, _uid(site, "occupier")),
            SEATED_SECONDS,
            "another Pod to hold the device",
        )
        site.admin.create(EnginePod("decode-a", role, node).manifest(NAMESPACE))
        slot = wait_until(lambda: _on_other_seat(site, before), SEATED_SECONDS, "the seat to follow the Pod")
        assert slot is not None
        (seat,) = slot["spec"]["seats"]
        given = site.devices_given("decode-a")
        assert (seat["node"], seat["devices"]) == (node, given)
        assert given != before
        assert {_holders(site, node)[device] for device in given} == {_uid(site, "decode-a")}
        assert slot["metadata"]["uid"] == first["metadata"]["uid"], "the same slot on another seat"
    finally:
        _delete_pod(site, "occupier")


def _occupier(node: str) -> JsonObject:
    """A Pod that takes a device and is no engine."""
    container = {
        "name": "occupier",
        "image": IMAGE,
        "command": ["sleep", "infinity"],
        "resources": {"limits": {RESOURCE: "1"}},
    }
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    metadata = {"name": "occupier", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _on_other_seat(site: RealSite, devices: list[str]) -> JsonObject | None:
    slot = _seated(site, "decode-a")
    return slot if slot is not None and slot["spec"]["seats"][0]["devices"] != devices else None


def test_a_node_that_dies_for_good_is_left_by_its_lease_and_its_pods_are_not_waited_for(
    engines: RealSite, stored: Stored, numbers: Numbers
) -> None:
    site = engines
    site.apply("PDGroup", GROUP, _group(attach="Standby"), NAMESPACE)
    slot, engine, other = _serving(site)
    name, epoch, node = slot["metadata"]["name"], slot["spec"]["epoch"], ENGINES[engine][1]
    there = stored.only_in(mappings(site, memory_keeper(site, node), disk_keeper(site, node)))
    assert there
    units = site.generations(POOL)
    led_elsewhere = _node_of_leader(site) != node
    limit, where = (
        (BOUND_BY_LEASE_SECONDS, "elsewhere") if led_elsewhere else (BOUND_BY_NEW_LEADER_SECONDS, "on it")
    )
    died = time.monotonic()
    with site.without_power(node):
        site.admin.delete("v1", "Pod", engine, NAMESPACE)  # as a person would, who then waits for it
        moved = wait_until(lambda: _moved(site, name, epoch), MOVE_SECONDS, "the slot to be bound anew")
        bound_seconds = time.monotonic() - died
        numbers.seconds[f"power cut to the slot bound elsewhere, the leader {where}"] = bound_seconds
        assert moved is not None
        assert moved["spec"]["seats"][0]["node"] == ENGINES[other][1]
        assert moved["spec"]["fencedBy"]["proof"] == "GuardExpiry"
        wait_until(lambda: _seated(site, other), SEATED_SECONDS, f"{other} to serve")
        wait_until(lambda: LABEL in _labels(site, other), SEATED_SECONDS, f"{other} to be labelled")
        site.cluster.wait_not_ready(node)
        dead = site.admin.get("v1", "Pod", engine, NAMESPACE)
        assert "deletionTimestamp" in dead["metadata"], "it is Terminating"
        assert dead["spec"]["nodeName"] == node, "the dead node's Pod is still there: nobody waited for it"
        assert LABEL not in dead["metadata"]["labels"]
        assert site.generations(POOL) == units, "nothing is made anew for a silent node"
        assert stored.lost(among=set(stored.keys) - there) == set()
        assert bound_seconds <= limit, f"bound {bound_seconds:.1f} s after the power cut; leader {where}"
    site.wait_bound(POOL)
    assert stored.lost() == there, "what was on the node is gone, and nothing else"


def _node_of_leader(site: RealSite) -> str:
    """The node whose operator leads, by the Lease."""
    holder = site.admin.get("coordination.k8s.io/v1", "Lease", "kvpool-operator", SYSTEM)["spec"][
        "holderIdentity"
    ]
    (node,) = [
        pod["spec"]["nodeName"] for pod in site.pods_of("operator") if pod["metadata"]["name"] in holder
    ]
    return str(node)


def _moved(site: RealSite, name: str, epoch: int) -> JsonObject | None:
    slot = site.admin.get(KVPOOL, "EngineSlot", name, NAMESPACE)
    return slot if slot["spec"]["epoch"] > epoch and slot["spec"].get("seats") else None


@pytest.mark.parametrize("attach_seconds", [ATTACH_SECONDS])
def test_operators_deleted_in_the_middle_of_a_move_make_it_once(engines: RealSite, stored: Stored) -> None:
    site = engines
    site.apply("PDGroup", GROUP, _group(attach="Standby"), NAMESPACE)
    slot, engine, other = _serving(site)
    name, epoch, node = slot["metadata"]["name"], slot["spec"]["epoch"], ENGINES[engine][1]
    (device,) = site.devices_given(engine)
    site.accelerators[node].fail(device)
    try:
        wait_until(lambda: _remaps(site, name), SEATED_SECONDS, "a move to be opened")
        old = kill_operators(site)
        (remap,) = _remaps(site, name)
        assert not RemapPhase(remap.get("status", {}).get("phase", "Running")).is_final
        assert _seated(site, other) is None, "the move is not over, and nobody leads"
        moved = wait_until(lambda: _moved(site, name, epoch), MOVE_SECONDS, "the slot to be bound anew")
        wait_until(lambda: _seated(site, other), SEATED_SECONDS, f"{other} to serve")
        site.wait_ready("operator", 2, but=old)
        assert moved is not None
        (remap,) = _remaps(site, name)  # one move, whoever finished it
        assert moved["spec"]["epoch"] == remap["spec"]["epoch"]
        assert [claim["slot"] for claim in _claims(site)] == [f"{NAMESPACE}/{name}"]
        assert stored.lost() == set()
    finally:
        site.equip(node)


def _remaps(site: RealSite, slot: str) -> list[JsonObject]:
    """Moves of a slot that leave a seat: its first binding is none."""
    found = site.admin.list(KVPOOL, "Remap", NAMESPACE)
    return [one for one in found if one["spec"]["slot"].endswith(slot) and one["spec"]["kind"] != "Initial"]


def _claims(site: RealSite) -> list[JsonObject]:
    return [claim for node in site.admin.list(KVPOOL, "KVNode") for claim in node["spec"].get("claims", [])]
