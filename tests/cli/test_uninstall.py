"""What an uninstall finds and says: tables for the pure part, and the dry run against the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from devcluster.controlplane import ControlPlane
from kvpool.api import labels
from kvpool.cli.uninstalling.inventory import Inventory, label_managers
from kvpool.cli.uninstalling.remains import Left, Step, left_of, release_of
from kvpool.cli.views.departure import Departure, kept_by_helm, over, progress
from kvpool.model.snapshot import Uninstall
from tests.cli.conftest import Plugin, own, put

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
DARK = {"conditions": [{"type": "Ready", "status": "Unknown"}]}


def thing(kind: str, name: str, namespace: str = "", **rest: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of objects
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "metadata": metadata | rest.pop("metadata", {}), "spec": {}, **rest}


def agent_on(node: str, phase: str = "Running") -> dict[str, Any]:
    return thing(
        "Pod", f"kvpool-agent-{node}", "kvpool-system", spec={"nodeName": node}, status={"phase": phase}
    )


UNIT = {"name": "chat.dram.n0", "tier": "DRAM", "sizeBytes": 67108864}
HELD = Inventory(
    own=[
        thing("KVNode", "node-1", spec={"units": [UNIT], "claims": [{"device": "dev0"}]}),
        thing("KVNode", "node-2", spec={"units": [UNIT]}),
        thing("EngineSlot", "chat-decode-0", "a", spec={"seats": [{"node": "node-2"}]}),
        thing("Remap", "chat-decode-0-1-1", "a"),
        thing("KVPool", "chat", "a", metadata={"finalizers": ["example.com/backup"]}),
        thing("Supernode", "sn-a"),
    ],
    nodes=[thing("Node", "node-1", status=READY), thing("Node", "node-2", status=DARK)],
    keepers=[thing("Pod", "keeper", "kvpool-system", spec={"nodeName": "node-2"})],
    outputs=[thing("HTTPRoute", "chat-edge", "a")],
    agents=[agent_on("node-1"), agent_on("node-2")],
    uninstall=Uninstall("kvpool-system", "1", ("node-1",)),
)


def texts(step: Step, inventory: Inventory = HELD) -> list[str]:
    return [str(item) for item in left_of(step, inventory)]


def test_what_is_held_is_named_with_the_machine_that_it_waits_for() -> None:
    assert texts(Step.HOLDINGS) == [
        "EngineSlot a/chat-decode-0 (node-2 does not say that its engine is out)",
        "Remap a/chat-decode-0-1-1",
        "unit node-1/chat.dram.n0 (64Mi of DRAM)",
        "device claim node-1/dev0",
        "unit node-2/chat.dram.n0 (64Mi of DRAM, its Node is not Ready)",
        "keeper Pod kvpool-system/keeper (node-2: its Node is not Ready)",
    ]


def test_objects_of_people_go_before_outputs_and_others_finalizers_are_named() -> None:
    assert texts(Step.OBJECTS) == [
        "KVPool a/chat (finalizers example.com/backup)",
        "Supernode sn-a",
        "HTTPRoute a/chat-edge",
    ]


def test_only_an_agent_on_record_has_retired() -> None:
    assert texts(Step.NODES) == [
        "agent's files on node-2 (its Node is not Ready)",
        "KVNode node-1",
        "KVNode node-2",
    ]


def test_a_node_without_an_agent_is_told_of_and_a_pod_that_never_ran_keeps_nothing() -> None:
    inventory = Inventory(own=[thing("KVNode", "node-3")], agents=[agent_on("node-4", "Pending")])
    assert texts(Step.NODES, inventory) == ["KVNode node-3 (no agent runs there)"]


def test_nothing_is_left_of_an_empty_cluster() -> None:
    assert [item for step in Step for item in left_of(step, Inventory())] == []


def test_labels_of_pods_are_ours_only_under_a_field_manager_of_an_output() -> None:
    entries = [
        {"manager": "kubelet", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
        {"manager": "kvpool-routing-1f", "fieldsV1": {"f:metadata": {"f:labels": {"f:serving": {}}}}},
        {"manager": "kvpool-routing-2a", "fieldsV1": {"f:metadata": {"f:annotations": {}}}},
    ]
    pod = thing("Pod", "decode", "a", metadata={"managedFields": entries})
    assert label_managers(pod) == ["kvpool-routing-1f"]
    assert texts(Step.OBJECTS, Inventory(labelled=[pod])) == ["label of Pod a/decode (kvpool-routing-1f)"]


def test_the_release_is_named_by_its_workloads() -> None:
    labelled = {"labels": {"app.kubernetes.io/instance": "cache"}}
    assert release_of(Inventory(workloads=[thing("Deployment", "kvpool-operator", metadata=labelled)])) == (
        "cache"
    )
    assert release_of(Inventory()) == "kvpool"


def test_what_is_left_in_the_end_is_a_finding_and_nothing_left_names_the_last_command() -> None:
    departure = Departure("kvpool-system", "kvpool", {}, crds=False)
    left = Left(left_of(Step.HOLDINGS, HELD), Step.HOLDINGS)
    findings = over(departure, left).findings
    assert findings[2] == "left: unit node-1/chat.dram.n0 (64Mi of DRAM)"
    assert "nothing was forced" in findings[-2]
    assert "kvpool-uninstall" in findings[-1]
    done = over(departure, Left())
    assert done.findings == ()
    assert "helm uninstall kvpool -n kvpool-system" in str(done.sections)


def test_progress_counts_what_is_waited_for() -> None:
    assert progress(Step.HOLDINGS, left_of(Step.HOLDINGS, HELD)) == (
        "memory and seats: 1 x EngineSlot, 1 x Remap, 2 x unit, 1 x device claim, 1 x keeper Pod"
    )


def test_without_drain_what_stays_is_said_and_what_helm_takes_is_not_listed() -> None:
    items = {step: left_of(step, HELD) for step in Step}
    screen = kept_by_helm(Departure("kvpool-system", "kvpool", items, crds=False))
    assert "agent Pod" not in str(screen.sections)
    assert "keeper Pod" in str(screen.sections)
    assert screen.findings == ()


# Against the real API server: nothing here changes anything that other tests look at.


def test_the_dry_run_names_what_would_go_and_changes_nothing(
    plugin: Plugin, kvpool_plane: ControlPlane, namespace: str, operator_namespace: str
) -> None:
    put(kvpool_plane, own("KVPool", "going", {"store": {"none": {}}}, namespace))
    kvpool_plane.admin.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": labels.PAUSE_CONFIG_MAP, "namespace": operator_namespace},
            "data": {"paused": "true"},
        }
    )
    ran = plugin("uninstall", "--drain", "-o", "json")
    assert ran.code == 0, ran.err
    named = {(item["kind"], item["name"]) for item in ran.document["items"]}
    assert {
        ("KVPool", f"{namespace}/going"),
        ("Lease", f"{operator_namespace}/kvpool-operator"),
        ("ConfigMap", f"{operator_namespace}/{labels.PAUSE_CONFIG_MAP}"),
    } <= named
    assert not any(kind == "CustomResourceDefinition" for kind, _ in named)
    table = plugin("uninstall", "--drain").out
    assert "Nothing was changed" in table
    assert max(len(line) for line in table.splitlines()) <= 100
    assert kvpool_plane.admin.find("kvpool.dev/v1alpha1", "KVPool", "going", namespace) is not None
    switch = kvpool_plane.admin.find("v1", "ConfigMap", labels.UNINSTALL_CONFIG_MAP, operator_namespace)
    assert switch is None


def test_definitions_are_named_only_when_they_are_to_go(plugin: Plugin) -> None:
    items = plugin("uninstall", "--drain", "--crds", "-o", "json").document["items"]
    named = [item["name"] for item in items if item["kind"] == "CustomResourceDefinition"]
    assert len(named) == 7
    assert all(name.endswith(".kvpool.dev") for name in named)


@pytest.mark.parametrize("flags", [("--yes",), ("--crds",)])
def test_yes_without_drain_is_wrong_usage(plugin: Plugin, flags: tuple[str, ...]) -> None:
    ran = plugin("uninstall", *flags)
    assert (ran.code, ran.out) == (2, "")
    assert "go with --drain" in ran.err


def test_a_pause_stops_an_uninstall_before_anything_is_changed(
    plugin: Plugin, kvpool_plane: ControlPlane, namespace: str, operator_namespace: str
) -> None:
    put(kvpool_plane, own("KVNode", f"held-{namespace}", {"operatorEpoch": 1}))
    plugin("pause", "--all")
    ran = plugin("uninstall", "--drain", "--yes")
    assert ran.code == 2
    assert "the cluster is paused" in ran.err
    switch = kvpool_plane.admin.find("v1", "ConfigMap", labels.UNINSTALL_CONFIG_MAP, operator_namespace)
    assert switch is None
    kvpool_plane.admin.delete("kvpool.dev/v1alpha1", "KVNode", f"held-{namespace}")
