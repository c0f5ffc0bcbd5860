"""A Pod's spec becomes a process with what a kubelet would have given it."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost
from devcluster.podprocess import PodProcesses, environment, expanded, pod_folder, rewritten
from devcluster.process import ProcessError
from devcluster.rest import JsonObject
from tests.harness.waiting import wait_until

AddHost = Callable[..., SimulatedHost]
SHOW = 'import json, os, sys; print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ)}), flush=True)'
STAY = f"{SHOW}; import time; time.sleep(600)"


def pod_of(namespace: str, container: JsonObject | None = None, **spec: object) -> JsonObject:
    container = {"name": "main", "image": "none", "command": ["python", "-c", STAY], **(container or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "shown", "namespace": namespace},
        "spec": {"automountServiceAccountToken": False, "containers": [container], **spec},
    }


def shown(host: SimulatedHost, pod: JsonObject) -> dict[str, Any]:
    process = host.process_of(pod)
    assert process is not None, pod["status"]["containerStatuses"]
    found = process.wait_for_line(r"^\{.*\}$")
    return dict(json.loads(found[0]))


@pytest.fixture
def host(control_plane: ControlPlane, add_host: AddHost) -> SimulatedHost:
    processes = PodProcesses(control_plane)
    name = f"node-{secrets.token_hex(4)}"
    return add_host(control_plane, name, runner=processes, refresh=processes.refresh)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/var/lib/kv", "/h/kv"),
        ("--state=/var/lib/kv/units", "--state=/h/kv/units"),
        ("simulated:/var/lib/kv/devices.json", "simulated:/h/kv/devices.json"),
        ("--devices=simulated:/var/lib/kv/devices.json,/ca/x", "--devices=simulated:/h/kv/devices.json,/c/x"),
        ("/var/lib/kvpool", "/var/lib/kvpool"),
        ("/other/var/lib/kv", "/other/var/lib/kv"),
        ("/var/lib/kv/deep/x", "/h/deep/x"),
        ("http://host/ca", "http://host/ca"),
    ],
)
def test_mount_paths_are_rewritten_where_a_path_can_begin(text: str, wanted: str) -> None:
    mounts = {"/var/lib/kv": "/h/kv", "/var/lib/kv/deep": "/h/deep", "/ca": "/c"}
    assert rewritten(text, mounts) == wanted


def test_variables_are_expanded_and_unknown_ones_stay() -> None:
    assert expanded("$(A)-$(B)/$(A)", {"A": "1"}) == "1-$(B)/1"


def test_a_field_that_a_pod_lacks_is_named() -> None:
    entry = {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nothing"}}}
    with pytest.raises(ProcessError, match=r"fieldPath metadata\.nothing is not in the Pod"):
        environment({"env": [entry]}, {"metadata": {}}, "10.0.0.1", "10.0.0.2")


def test_arguments_get_fields_addresses_and_places(namespace: str, host: SimulatedHost) -> None:
    fields = {"POD_UID": "metadata.uid", "NODE": "spec.nodeName", "IP": "status.podIP", "H": "status.hostIP"}
    container = {
        "args": ["--id=$(POD_UID)", "--node=$(NODE)", "--state-dir=/state", "$(IP)", "--up=$(H):1", "$(UP)"],
        "env": [
            *({"name": n, "valueFrom": {"fieldRef": {"fieldPath": p}}} for n, p in fields.items()),
            {"name": "UP", "value": "$(NODE)/up"},
            {"name": "FOLDER", "value": "/state/x"},
        ],
        "volumeMounts": [{"name": "state", "mountPath": "/state"}],
    }
    volumes = [{"name": "state", "hostPath": {"path": "/var/lib/test", "type": "DirectoryOrCreate"}}]
    pod = host.add_pod(pod_of(namespace, container=container, volumes=volumes))
    told = shown(host, pod)
    place = str(host.files.outer("/var/lib/test"))
    assert told["argv"] == [
        f"--id={pod['metadata']['uid']}",
        f"--node={host.name}",
        f"--state-dir={place}",
        host.address,
        f"--up={host.address}:1",
        f"{host.name}/up",
    ]
    assert told["env"]["FOLDER"] == f"{place}/x"
    assert told["env"]["KUBECONFIG"] == ""
    assert Path(place).is_dir()


def test_a_token_is_bound_to_the_pod_and_for_its_audience_alone(
    control_plane: ControlPlane, namespace: str, host: SimulatedHost
) -> None:
    source = {"serviceAccountToken": {"audience": "kvpool", "expirationSeconds": 600, "path": "token"}}
    volumes = [{"name": "token", "projected": {"sources": [source]}}]
    container = {
        "args": ["/run/token/token"],
        "volumeMounts": [{"name": "token", "mountPath": "/run/token"}],
    }
    pod = host.add_pod(pod_of(namespace, container=container, volumes=volumes))
    file = Path(shown(host, pod)["argv"][0])
    assert file.stat().st_mode & 0o077 == 0
    body = file.read_text().split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert claims["aud"] == ["kvpool"]
    assert claims["kubernetes.io"]["pod"]["uid"] == pod["metadata"]["uid"]
    refused = control_plane.with_token(file.read_text()).request("GET", "/api/v1/pods")
    assert refused.code == 401


def test_a_pod_that_asks_for_it_speaks_to_the_api_as_its_service_account(
    namespace: str, host: SimulatedHost
) -> None:
    pod = host.add_pod(pod_of(namespace, automountServiceAccountToken=True))
    path = Path(shown(host, pod)["env"]["KUBECONFIG"])
    assert path.is_relative_to(pod_folder(host, pod))
    text = path.read_text()
    assert "token:" in text
    assert "client-key" not in text


def test_a_config_map_is_followed_while_the_pod_runs(
    control_plane: ControlPlane, namespace: str, host: SimulatedHost
) -> None:
    volumes = [{"name": "ca", "configMap": {"name": "bundle", "optional": True}}]
    container = {"args": ["/etc/ca/ca.crt"], "volumeMounts": [{"name": "ca", "mountPath": "/etc/ca"}]}
    pod = host.add_pod(pod_of(namespace, container=container, volumes=volumes))
    file = Path(shown(host, pod)["argv"][0])
    assert not file.exists()
    bundle = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bundle", "namespace": namespace}}
    for content in ("one", "two"):
        control_plane.admin.apply({**bundle, "data": {"ca.crt": content}})
        wait_until(lambda: file.read_text() == content, 10, f"{content!r}", tolerate=(FileNotFoundError,))  # noqa: B023 - polled before the loop goes on


def test_a_pod_whose_config_map_is_gone_keeps_no_other_from_following_its_own(
    control_plane: ControlPlane, namespace: str, host: SimulatedHost
) -> None:
    for name in ("gone", "bundle"):
        metadata = {"name": name, "namespace": namespace}
        control_plane.admin.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})
    first = pod_of(namespace, volumes=[{"name": "ca", "configMap": {"name": "gone"}}])
    first["metadata"]["name"] = "first"  # also in the order in which they are looked at
    host.add_pod(first)
    control_plane.admin.delete("v1", "ConfigMap", "gone", namespace)
    test_a_config_map_is_followed_while_the_pod_runs(control_plane, namespace, host)


@pytest.mark.parametrize(
    ("volume", "why"),
    [
        ({"configMap": {"name": "missing"}}, 'configmap "missing" not found'),
        ({"nfs": {"server": "x", "path": "/"}}, "nfs cannot be had in process form"),
    ],
)
def test_a_volume_that_cannot_be_had_is_shown(
    namespace: str, host: SimulatedHost, volume: JsonObject, why: str
) -> None:
    pod = host.add_pod(pod_of(namespace, volumes=[{"name": "odd", **volume}]))
    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert why in waiting["message"]
    assert host.process_of(pod) is None


def test_a_pod_without_a_command_is_an_object_alone(namespace: str, host: SimulatedHost) -> None:
    pod = host.add_pod(pod_of(namespace, container={"command": []}))
    assert host.process_of(pod) is None
    assert pod["status"]["phase"] == "Running"
