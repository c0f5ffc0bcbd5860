"""`kubectl kvpool pause` and `resume` against the real API server."""

from __future__ import annotations

from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject
from tests.cli.conftest import Plugin, own, put

NO_STORE: JsonObject = {"store": {"none": {}}}


def pause_map(plane: ControlPlane, namespace: str) -> JsonObject:
    data: JsonObject = plane.admin.get("v1", "ConfigMap", "kvpool-pause", namespace)["data"]
    return data


def test_pausing_all_writes_who_why_and_when_and_resuming_ends_it(
    kvpool_plane: ControlPlane, operator_namespace: str, plugin: Plugin
) -> None:
    ran = plugin("pause", "--all", "--reason", "switch upgrade")
    assert (ran.code, ran.out) == (0, "the cluster is paused\n")
    data = pause_map(kvpool_plane, operator_namespace)
    assert (data["paused"], data["by"], data["reason"]) == ("true", "devcluster-admin", "switch upgrade")
    status = plugin("status")
    assert "the cluster is PAUSED by devcluster-admin" in status.out
    assert "switch upgrade" in status.out

    assert plugin("resume", "--all").out == "the cluster is resumed\n"
    data = pause_map(kvpool_plane, operator_namespace)
    assert data["paused"] == "false"
    assert "reason" not in data
    assert "the cluster is not paused" in plugin("status").out


def test_an_object_is_paused_by_its_annotation_and_the_timeline_tells_who_did_it(
    kvpool_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    put(kvpool_plane, own("KVPool", "chat", NO_STORE, namespace))
    ran = plugin("pause", "pool/chat", "-n", namespace, "--reason", "bisecting")
    assert ran.out == f"KVPool {namespace}/chat is paused\n"
    found = kvpool_plane.admin.get("kvpool.dev/v1alpha1", "KVPool", "chat", namespace)
    assert found["metadata"]["annotations"]["kvpool.dev/paused"] == "true"
    assert plugin("pause", "pool/chat", "-n", namespace).out.endswith("was paused already\n")

    assert plugin("resume", "kvp/chat", "-n", namespace).code == 0
    found = kvpool_plane.admin.get("kvpool.dev/v1alpha1", "KVPool", "chat", namespace)
    assert "kvpool.dev/paused" not in found["metadata"].get("annotations", {})

    told = plugin("timeline", "-n", namespace, "-o", "json").document["happenings"]
    events = [entry["text"] for entry in told if entry["what"] == "Event"]
    assert events == ["Paused: paused by devcluster-admin: bisecting", "Resumed: resumed by devcluster-admin"]


def test_what_the_operator_writes_cannot_be_paused(namespace: str, plugin: Plugin) -> None:
    ran = plugin("pause", "slot/chat-decode-0", "-n", namespace)
    assert ran.code == 2
    assert ran.err.startswith(f"error: EngineSlot {namespace}/chat-decode-0 is written by the operator")


def test_a_missing_object_and_a_missing_operator_namespace_are_told(namespace: str, plugin: Plugin) -> None:
    ran = plugin("pause", "pool/nobody", "-n", namespace)
    assert (ran.code, ran.err) == (2, f"error: KVPool {namespace}/nobody does not exist\n")
    ran = plugin("pause", "--all", "--operator-namespace", "nowhere")
    assert (ran.code, ran.err) == (
        2,
        "error: there is no namespace nowhere: name the operator's with --operator-namespace\n",
    )


def test_pause_needs_to_be_told_what(plugin: Plugin) -> None:
    for arguments in (["pause"], ["resume", "--all", "pool/chat"]):
        ran = plugin(*arguments)
        assert (ran.code, ran.err) == (2, "error: give either --all or one KIND/NAME\n")
    ran = plugin("pause", "chat")
    assert ran.code == 2
    assert "write pool/chat, slot/chat-decode-0 or node/node-1" in ran.err
    ran = plugin("pause", "pod/chat")
    assert ran.code == 2
    assert "there is no kind 'pod'" in ran.err


def test_a_reason_that_would_be_kept_nowhere_is_refused_before_anything_is_written(
    kvpool_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    put(kvpool_plane, own("KVPool", "chat", NO_STORE, namespace))
    for verb in (("pause", "pool/chat", "-n", namespace), ("pause", "--all"), ("drain", "node-1")):
        ran = plugin(*verb, "--reason", "x" * 257)
        assert (ran.code, ran.err) == (2, "error: --reason has 257 characters: give 256 at most\n")
    found = kvpool_plane.admin.get("kvpool.dev/v1alpha1", "KVPool", "chat", namespace)
    assert "kvpool.dev/paused" not in found["metadata"].get("annotations", {})

    longest = "\u00e9" * 256
    assert plugin("pause", "pool/chat", "-n", namespace, "--reason", longest).code == 0
    told = plugin("timeline", "-n", namespace, "-o", "json").document["happenings"]
    assert [entry["text"] for entry in told if entry["what"] == "Event"] == [
        f"Paused: paused by devcluster-admin: {longest}"
    ]
