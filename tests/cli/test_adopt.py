"""`kubectl kvpool adopt`: an existing deployment becomes manifests that only look at it."""

from __future__ import annotations

import yaml

from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject
from kvpool.cli.adoption.engines import find_engines
from kvpool.cli.adoption.proposal import Existing, propose
from tests.cli.conftest import Plugin, put


def service(name: str, *ports: int | tuple[int, int], selector: dict[str, str] | None = None) -> JsonObject:
    named = []
    for port in ports:
        outer, inner = port if isinstance(port, tuple) else (port, port)
        named.append({"name": f"p{outer}", "port": outer, "targetPort": inner})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"ports": named, "selector": selector or {"app": name}},
    }


def pod(
    name: str, image: str = "vllm/vllm-openai", *args: str, port: int = 8000, **metadata: object
) -> JsonObject:
    container = {"name": "main", "image": image, "args": list(args), "ports": [{"containerPort": port}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [container]},
    }


def owned(kind: str, name: str) -> list[JsonObject]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}]


def test_what_is_found_can_be_applied_as_it_is_printed(
    kvpool_plane: ControlPlane, namespace: str, plugin: Plugin
) -> None:
    objects = [
        service("mooncake-master", 50051, (9003, 19003)),
        pod("prefill-0", labels={"app": "prefill"}, ownerReferences=owned("StatefulSet", "chat-prefill")),
        pod("decode-0", labels={"app": "decode"}, ownerReferences=owned("StatefulSet", "chat-decode")),
        pod("web-0", "nginx", labels={"app": "web"}),
    ]
    for manifest in objects:
        put(kvpool_plane, {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}})
    ran = plugin("adopt", "-n", namespace)
    assert ran.code == 0, ran.err
    pool, group = yaml.safe_load_all(ran.out)
    assert pool["kind"] == "KVPool"
    assert pool["metadata"] == {"name": "mooncake", "namespace": namespace}
    assert pool["spec"] == {
        "mode": "Observe",
        "store": {"mooncake": {"master": {"serviceRef": {"name": "mooncake-master"}, "adminPort": 19003}}},
    }
    assert group["spec"] == {
        "mode": "Observe",
        "poolRef": {"name": "mooncake"},
        "decode": {"workloadRef": {"kind": "StatefulSet", "name": "chat-decode"}},
        "prefill": {"workloadRef": {"kind": "StatefulSet", "name": "chat-prefill"}},
    }
    assert f"# cannot control weights in a gateway: namespace {namespace} has no Gateway" in ran.out
    for manifest in (pool, group):
        put(kvpool_plane, manifest)


def test_an_empty_namespace_is_a_finding(namespace: str, plugin: Plugin) -> None:
    ran = plugin("adopt", "-n", namespace)
    assert ran.code == 1
    assert f"# nothing in namespace {namespace} that kvpool could look at" in ran.out


def test_bare_pods_are_selected_by_the_labels_they_share() -> None:
    one = pod("decode-0", labels={"app": "decode", "team": "a", "pod-index": "0"})
    two = pod("decode-1", labels={"app": "decode", "team": "b", "pod-index": "1"})
    (found,) = find_engines([one, two])
    assert (found.role, found.pods, dict(found.labels)) == (
        "Decode",
        ("decode-0", "decode-1"),
        {"app": "decode"},
    )
    proposal = propose(Existing("inference", pods=[one, two]))
    (pool, group) = proposal.manifests
    assert pool["spec"]["store"] == {"none": {}}
    assert group["spec"]["decode"] == {"podSelector": {"matchLabels": {"app": "decode"}}}
    assert any("nothing there can be scaled" in text for text in proposal.cannot)


def test_bare_pods_that_one_selector_selects_are_one_group_whatever_their_names() -> None:
    pods = [
        pod("decode-a", labels={"app": "engine", "role": "decode"}),
        pod("decode-b", labels={"app": "engine", "role": "decode", "team": "b"}),
        pod("prefill-a", labels={"app": "engine", "role": "prefill"}),
    ]
    (_, group) = propose(Existing("inference", pods=pods)).manifests
    assert group["spec"]["decode"] == {"podSelector": {"matchLabels": {"app": "engine", "role": "decode"}}}
    assert group["spec"]["prefill"] == {"podSelector": {"matchLabels": {"app": "engine", "role": "prefill"}}}


def test_a_gateway_elsewhere_is_found_by_the_route_that_names_it_and_our_own_route_is_no_obstacle() -> None:
    route = {"metadata": {"name": "edge"}, "spec": {"parentRefs": [{"name": "gw", "namespace": "ingress"}]}}
    ours = {
        "metadata": {"name": "chat-edge", "labels": {"app.kubernetes.io/managed-by": "kvpool"}},
        "spec": {"parentRefs": [{"name": "near"}]},
    }
    proposal = propose(Existing("inference", routes=[route, ours]))
    assert proposal.found == ("Gateway gw in namespace ingress", "Gateway near")
    assert [text.partition(":")[0] for text in proposal.cannot] == ["HTTPRoute edge"]


def test_workloads_are_named_as_people_name_them() -> None:
    deployed = pod(
        "e-7d9f-x",
        labels={"app": "chat-decode", "pod-template-hash": "7d9f"},
        ownerReferences=owned("ReplicaSet", "chat-decode-7d9f"),
    )
    leader = pod("p-0", labels={"leaderworkerset.sigs.k8s.io/name": "chat-prefill"}, port=9000)
    found = {(one.role, one.kind, one.name, one.port) for one in find_engines([deployed, leader])}
    assert found == {
        ("Decode", "Deployment", "chat-decode", 8000),
        ("Prefill", "LeaderWorkerSet", "chat-prefill", 9000),
    }


def test_a_role_is_read_from_the_transfer_configuration_and_routers_are_no_engines() -> None:
    producer = pod("a", "vllm/vllm-openai", "--kv-transfer-config={'kv_role':'kv_producer'}")
    consumer = pod("b", "vllm/vllm-openai", "--kv-transfer-config={'kv_role':'kv_consumer'}")
    router = pod("c", "vllm/vllm-router", labels={"role": "decode"})
    called = pod("d", "house-engine", labels={"example.com/role": "prefill"})
    web = pod("e", "nginx", labels={"role": "web"})
    found = find_engines([producer, consumer, router, called, web])
    assert sorted((one.role, one.pods) for one in found) == [
        ("Decode", ("b",)),
        ("Prefill", ("a",)),
        ("Prefill", ("d",)),
    ]


def test_what_is_out_of_reach_is_said_with_its_reason() -> None:
    master = pod("mooncake-0", "store", "mooncake_master", "--port=50051", labels={"app": "m"})
    route = {"metadata": {"name": "edge"}}
    first = pod("x-0", labels={"app": "decode"}, ownerReferences=owned("StatefulSet", "chat-decode"))
    second = pod("y-0", labels={"app": "decode"}, ownerReferences=owned("Deployment", "chat-decode"))
    proposal = propose(
        Existing(
            "inference",
            services=[service("kv", 50051, selector={"app": "kv"})],
            pods=[master, first, second],
            routes=[route],
        )
    )
    text = "\n".join(proposal.cannot)
    assert "the use of the store behind Service kv: it names no port 9003" in text
    assert "the Mooncake master in pod mooncake-0: no Service selects it" in text
    assert "HTTPRoute edge: it is somebody else's" in text
    assert "group chat has Decode engines of Deployment chat-decode" in text
