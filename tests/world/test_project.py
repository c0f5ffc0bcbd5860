"""Raw objects become facts; what makes no sense is left out with a reason, and nothing raises."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvpool.api import KVPool, TierBudget
from kvpool.api.common import Mode
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import NodeFact, PodFact
from kvpool.model.snapshot import Leadership
from kvpool.world.build import build_snapshot, read_objects
from kvpool.world.project import (
    Malformed,
    memory_bytes,
    parse_object,
    project_node,
    project_pod,
    ready_addresses,
)
from tests.builders.cluster import Cluster

NODE: dict[str, Any] = {
    "kind": "Node",
    "metadata": {"name": "node-1", "uid": "u1", "labels": {"rack": "a"}},
    "status": {
        "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}],
        "addresses": [
            {"type": "Hostname", "address": "node-1"},
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "InternalIP", "address": "fd00::1"},
        ],
        "allocatable": {"memory": "65842104Ki"},
        "nodeInfo": {"bootID": "boot-1"},
    },
}
POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {
        "name": "engine",
        "namespace": "inference",
        "uid": "u2",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-02T03:00:00Z",
        "ownerReferences": [
            {"kind": "Other", "name": "x"},
            {"kind": "StatefulSet", "name": "engines", "controller": True},
        ],
    },
    "spec": {"nodeName": "node-1", "containers": [{"name": "main"}]},
    "status": {
        "phase": "Running",
        "podIP": "10.1.0.1",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [
            {"name": "gone", "state": {"terminated": {"exitCode": 1}}},
            {"name": "main", "state": {"running": {"startedAt": "2026-01-02T03:05:00Z"}}},
            {"name": "side", "state": {"running": {"startedAt": "2026-01-02T03:04:00Z"}}},
        ],
    },
}


def requesting(**fields: object) -> int:
    fact = project_pod({**POD, "spec": {"containers": [], **fields}})
    assert isinstance(fact, PodFact), fact
    return fact.memory_request_bytes


def container(memory: str, **fields: object) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"memory": memory}}, **fields}


def test_a_node_is_read() -> None:
    assert project_node(NODE, 5.0) == NodeFact(
        name="node-1",
        uid="u1",
        labels={"rack": "a"},
        ready=True,
        ready_since=5.0,
        address="10.0.0.1",
        allocatable_memory_bytes=65842104 * 1024,
        boot_id="boot-1",
    )


@pytest.mark.parametrize(
    ("conditions", "ready", "since"),
    [
        ([{"type": "Ready", "status": "False"}], False, 5.0),
        ([{"type": "Ready", "status": "Unknown"}], None, 5.0),
        ([], None, None),
        (None, None, None),
    ],
)
def test_unknown_readiness_is_not_unready_and_an_absent_one_is_older_than_any(
    conditions: list[dict[str, str]] | None, ready: bool | None, since: float | None
) -> None:
    fact = project_node({**NODE, "status": {"conditions": conditions}}, 5.0)
    assert isinstance(fact, NodeFact)
    assert (fact.ready, fact.ready_since) == (ready, since)


def test_a_node_that_says_nothing_of_its_memory_has_none_to_schedule() -> None:
    fact = project_node({"metadata": {"name": "n", "uid": "u"}}, None)
    assert isinstance(fact, NodeFact)
    assert fact.allocatable_memory_bytes == 0


def test_a_pod_is_read() -> None:
    assert project_pod(POD) == PodFact(
        key=ObjectKey("inference", "engine"),
        uid="u2",
        labels={},
        node="node-1",
        address="10.1.0.1",
        phase="Running",
        ready=True,
        deleting=False,
        memory_request_bytes=0,
        owner="StatefulSet/engines",
        resource_version="7",
        created_at="2026-01-02T03:00:00Z",
        started_at="2026-01-02T03:05:00Z",
        has_one_container=False,
    )


def test_a_pod_with_one_container_is_known_as_such() -> None:
    alone = {**POD, "status": {**POD["status"], "containerStatuses": POD["status"]["containerStatuses"][1:2]}}
    fact = project_pod(alone)
    assert isinstance(fact, PodFact), fact
    assert fact.has_one_container


def test_a_pod_requests_what_its_containers_request_together() -> None:
    assert requesting(containers=[container("1Ki"), container("2Ki"), {"name": "none"}]) == 3072


def test_initialisation_counts_where_it_is_larger_and_side_cars_count_always() -> None:
    side_car = container("1Ki", restartPolicy="Always")
    assert requesting(containers=[container("2Ki")], initContainers=[container("8Ki")]) == 8192
    assert requesting(containers=[container("2Ki")], initContainers=[side_car]) == 3072
    assert requesting(containers=[container("2Ki")], initContainers=[side_car, container("8Ki")]) == 9216


def test_the_pods_own_request_and_its_overhead_count() -> None:
    whole = {"requests": {"memory": "4Ki"}}
    assert requesting(containers=[container("2Ki")], resources=whole, overhead={"memory": "1Ki"}) == 5120


@pytest.mark.parametrize(
    ("text", "size"), [("1Gi", 1 << 30), ("1e3", 1000), ("1500m", 2), ("128974848000m", 128974848), ("0", 0)]
)
def test_every_quantity_that_the_api_server_accepts_is_read(text: str, size: int) -> None:
    assert memory_bytes(text) == size


@pytest.mark.parametrize("text", ["", "lots", "NaN", "1e", "Infinity", "1e999999999", "1e99999"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        memory_bytes(text)


def test_ready_addresses_of_a_service_are_read() -> None:
    raw = {
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "master"}},
        "endpoints": [
            {"addresses": ["10.0.0.1"], "conditions": {"ready": True}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": False}},
            {"addresses": ["10.0.0.3"]},
        ],
    }
    assert ready_addresses(raw) == (("master", "10.0.0.1"), ("master", "10.0.0.3"))


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"metadata": None},
        {"metadata": {"name": 7, "uid": "u"}},
        {"metadata": {"name": "n", "uid": "u", "labels": ["a"]}},
        {"metadata": {"name": "n", "uid": "u"}, "status": {"allocatable": {"memory": "lots"}}},
        {"metadata": {"name": "n", "uid": "u"}, "status": {"conditions": [{}]}},
    ],
)
def test_a_malformed_node_is_left_out_with_a_reason(raw: dict[str, Any]) -> None:
    fact = project_node(raw, 0.0)
    assert isinstance(fact, Malformed)
    assert str(fact).startswith("Node ")
    assert "cannot be read and is left out" in str(fact)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "name", "namespace", "uid", "spec", "status", "labels", "conditions"]
            )
            | st.sampled_from(["containers", "endpoints", "addresses", "allocatable", "memory", "type"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(["metadata", "spec", "status", "endpoints", "kind"]), json, max_size=5)
)
def test_no_object_of_any_shape_raises(raw: dict[str, Any]) -> None:
    project_node(raw, 0.0)
    project_pod(raw)
    ready_addresses(raw)
    parse_object(KVPool, raw)
    parse_object(TierBudget, raw)


def test_an_object_of_our_own_names_the_field_that_cannot_be_read() -> None:
    raw = {"metadata": {"name": "chat", "namespace": "inference"}, "spec": {"store": {}, "mode": "Fast"}}
    found = parse_object(KVPool, raw)
    assert isinstance(found, Malformed)
    assert str(found).startswith("KVPool inference/chat cannot be read and is left out: spec.mode:")


def test_fields_of_a_newer_version_are_passed_over() -> None:
    raw = {"metadata": {"name": "chat"}, "spec": {"store": {"none": {}}, "future": 1}, "also": 2}
    assert isinstance(parse_object(KVPool, raw), KVPool)


def test_a_snapshot_is_built_from_whatever_can_be_read() -> None:
    pool = {
        "kind": "KVPool",
        "metadata": {"name": "chat", "namespace": "inference"},
        "spec": {"store": {"none": {}}},
    }
    broken = {"kind": "TierBudget", "metadata": {"name": "gpu"}, "spec": {}}
    objects = read_objects([NODE, POD, pool, broken, {"kind": "Service"}, {}], Cluster().now)
    snapshot = build_snapshot(objects, Leadership(1, 0.0, 0.0), mode_cap=Mode.ENFORCE, paused=False)
    assert list(snapshot.nodes) == ["node-1"]
    assert list(snapshot.pods) == [ObjectKey("inference", "engine")]
    assert list(snapshot.pools) == [ObjectKey("inference", "chat")]
    assert snapshot.budgets == {}
    assert [str(found).split(":")[0] for found in objects.malformed] == [
        "TierBudget gpu cannot be read and is left out"
    ]


def test_a_snapshot_names_what_could_not_be_read() -> None:
    raw = {
        "kind": "KVPool",
        "metadata": {"name": "chat", "namespace": "inference"},
        "spec": {"mode": "Later"},
    }
    objects = read_objects([raw], Cluster().now)
    snapshot = build_snapshot(objects, Leadership(1, 0.0, 0.0), mode_cap=Mode.ENFORCE, paused=False)
    assert snapshot.may_exist("KVPool", ObjectKey("inference", "chat"))
    assert not snapshot.pools
