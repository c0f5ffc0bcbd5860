"""`kubectl kvpool plan -f`: what applying a manifest would do, and what it would be refused for."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml

from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject
from tests.cli.conftest import Plugin, own, put
from tests.cli.world import World, new_mark


@pytest.fixture
def world(kvpool_plane: ControlPlane, namespace: str) -> World:
    made = World(kvpool_plane, namespace, new_mark())
    made.put_node(1)
    made.put_node(2)
    made.put_budget(per_node="64Gi")
    return made


def written(folder: Path, *manifests: JsonObject) -> str:
    path = folder / "manifest.yaml"
    path.write_text(yaml.safe_dump_all(manifests))
    return str(path)


def test_a_pool_too_large_prints_what_was_asked_and_what_there_is(
    world: World, plugin: Plugin, tmp_path: Path
) -> None:
    ran = plugin("plan", "-f", written(tmp_path, world.pool("1Ti")))
    text = " ".join(ran.out.split())
    assert ran.code == 1
    assert "NotEnoughRoom" in text
    assert "1Ti" in text
    assert "128Gi" in text
    assert "nothing: no action follows from it" in text


def test_a_pool_that_fits_lists_the_units_of_every_node_and_stores_nothing(
    world: World, plugin: Plugin, tmp_path: Path
) -> None:
    ran = plugin("plan", "-f", written(tmp_path, world.pool("32Gi")), "-o", "json")
    assert ran.code == 0
    document = ran.document
    assert document["manifests"] == [{"object": f"KVPool {world.namespace}/chat", "change": "created"}]
    bound = {(deed["about"], deed["text"]) for deed in document["wouldBeDone"]}
    for number in (1, 2):
        text = f"bind 16Gi of DRAM on NUMA node 0 for {world.namespace}/chat"
        assert (f"KVNode {world.node(number)}", text) in bound
    assert world.plane.admin.find("kvpool.dev/v1alpha1", "KVPool", "chat", world.namespace) is None


def test_a_changed_pool_is_compared_with_what_is_there(world: World, plugin: Plugin, tmp_path: Path) -> None:
    put(world.plane, world.pool("32Gi"))
    same = plugin("plan", "-f", written(tmp_path, world.pool("32Gi")), "-o", "json").document
    assert same["manifests"][0]["change"] == "unchanged"
    assert same["wouldBeDone"] == []
    larger = plugin("plan", "-f", written(tmp_path, world.pool("64Gi")), "-o", "json").document
    assert larger["manifests"][0]["change"] == "changed"
    assert any("bind 32Gi of DRAM" in deed["text"] for deed in larger["wouldBeDone"])
    assert any("bind 16Gi of DRAM" in deed["text"] for deed in larger["wouldNotBeDone"])


def test_a_pool_that_only_recommends_shows_what_is_held_back(
    world: World, plugin: Plugin, tmp_path: Path
) -> None:
    ran = plugin("plan", "-f", written(tmp_path, world.pool("32Gi", mode="Recommend")), "-o", "json")
    (held,) = ran.document["heldBack"]
    assert "32Gi of DRAM" in held["action"]
    assert held["heldBy"].startswith("ModeRecommend")


def test_a_manifest_the_api_server_refuses_is_told_in_its_words(
    world: World, plugin: Plugin, tmp_path: Path
) -> None:
    ran = plugin("plan", "-f", written(tmp_path, world.pool("0")))
    assert ran.code == 2
    assert f"KVPool {world.namespace}/chat would be refused" in ran.err
    assert "1Mi or more" in ran.err


def test_standard_input_and_the_namespace_flag_are_taken(world: World, plugin: Plugin) -> None:
    pool = world.pool("32Gi")
    del pool["metadata"]["namespace"]
    ran = plugin("plan", "-f", "-", "-n", world.namespace, "-o", "json", stdin=yaml.safe_dump(pool))
    assert ran.document["manifests"][0]["object"] == f"KVPool {world.namespace}/chat"


def test_a_group_without_its_pool_is_a_finding(world: World, plugin: Plugin, tmp_path: Path) -> None:
    decode = {"podSelector": {"matchLabels": {"app": "decode"}}, "instances": 1}
    spec = {"mode": "Enforce", "poolRef": {"name": "nowhere"}, "decode": decode}
    ran = plugin("plan", "-f", written(tmp_path, own("PDGroup", "chat", spec, world.namespace)))
    assert ran.code == 1
    assert f"! PDGroup {world.namespace}/chat: PoolNotFound" in ran.out


def test_files_that_hold_no_plan_are_refused(plugin: Plugin, tmp_path: Path) -> None:
    ran = plugin("plan", "-f", str(tmp_path / "none.yaml"))
    assert ran.code == 2
    assert "cannot be read" in ran.err
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}
    ran = plugin("plan", "-f", written(tmp_path, pod))
    assert ran.code == 2
    assert "v1 Pod is nothing that people plan here" in ran.err
    (tmp_path / "empty.yaml").write_text("")
    ran = plugin("plan", "-f", str(tmp_path / "empty.yaml"))
    assert ran.err.endswith("holds no manifest\n")


POOL = """\
apiVersion: kvpool.dev/v1alpha1
kind: KVPool
metadata: {name: chat}
spec: {mode: Observe, tiers: [{name: DRAM, size: 1Gi}], store: {none: {}}}
"""
HEAD, SPEC = POOL.split("metadata: {name: chat}\n")


def listed(*manifests: str) -> str:
    """As `kubectl get -o yaml` prints several objects."""
    items = "".join(f"- {textwrap.indent(one, '  ').lstrip()}" for one in manifests)
    return f"apiVersion: v1\nkind: List\nitems:\n{items or '  []'}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{POOL}5: 6\n", "KVPool chat: it has a key 5, which is no text: write it in quotes"),
        (f"{POOL}x: [0, {{y: !!set {{a}}}}]\n", "KVPool chat: x[1].y is a set, which JSON does not have"),
        (f"{POOL}x: !!binary aGVsbG8=\n", "KVPool chat: x is a bytes, which JSON does not have"),
        (f"{POOL}x: .nan\n", "KVPool chat: x is nan, which is no number of JSON"),
        (f'{POOL}x: "\\ud800"\n', "KVPool chat: x has half of a character in it"),
        (f"{HEAD}metadata: {{name: 5}}\n{SPEC}", "a KVPool has no metadata.name, or one that is no text"),
        (f"{HEAD}metadata: {{name: chat, namespace: [a]}}\n{SPEC}", "metadata.namespace is no text"),
        (f"{HEAD}metadata: {{name: chat, labels: [a]}}\n{SPEC}", "metadata.labels is no mapping"),
        (f"{HEAD}metadata: &m {{name: chat, labels: *m}}\n{SPEC}", "line 3 holds an alias of itself"),
        (f"{POOL}---\n{POOL}", "/chat is in it twice: keep one"),
        (listed(POOL, POOL), "/chat is in it twice: keep one"),
        (listed(POOL, "kind: Pod"), "a document is no manifest"),
        (listed(), "holds no manifest"),
        ("{kind: List, items: a}", "holds no manifest"),
        (f"{POOL}metadata: {{name: other}}\n", "'metadata' is given twice, in line 3 and in line 5"),
        (f"{POOL}x: 2020-99-99\n", "line 5: a value is not what its form or tag says"),
        ("- 1\n", "a document is no manifest"),
        ("[" * 100_000, "it is nested too deeply"),
    ],
)
def test_what_no_manifest_can_say_is_told_with_the_file(
    plugin: Plugin, tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    ran = plugin("plan", "-f", str(path))
    assert ran.code == 2
    assert ran.err.startswith(f"error: {path}")
    assert told in ran.err
    assert ran.err.count("\n") == 1
