"""Which Pod Security rules of level `restricted` the chart's Pods and the keepers break, and why."""

from __future__ import annotations

from typing import Any

import pytest

from kvpool.api.kvnode import UnitSpec
from kvpool.api.tierbudget import Backend
from kvpool.control.keeper_pod import KeeperTemplate, keeper_manifest
from kvpool.model.decisions import KeeperSpec
from kvpool.model.ids import ObjectKey
from tests.chart.rendering import of_kind, render

ALLOWED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}

EXCEPTIONS = {
    "operator": {},
    "keeper": {
        "hostNetwork": "other hosts' engines reach the segment under the host's address",
        "hostPath": "the unit's file lies where the agent made its place on the host",
    },
    "agent": {
        "hostNetwork": "peers probe the host's address",
        "hostPID": "it looks which processes map a unit before it removes it",
        "hostPath": "it makes places for units on the host",
        "privileged": "it mounts a tmpfs for each unit, which others have to see",
        "runAsNonRoot": "it gives folders to the keepers' user",
        "allowPrivilegeEscalation": "comes with privileged",
        "capabilities": "comes with privileged",
        "seccompProfile": "comes with privileged",
    },
    "agent without rights": {
        "hostNetwork": "peers probe the host's address",
        "hostPID": "it looks which processes map a unit before it removes it",
        "hostPath": "it makes places for units on the host",
        "runAsNonRoot": "it gives folders to the keepers' user",
        "capabilities": "CHOWN, DAC_OVERRIDE and FOWNER, to give folders to the keepers' user",
    },
}


def broken_rules(pod: dict[str, Any]) -> set[str]:
    """Names of the rules of level `restricted` that a Pod's spec breaks."""
    found = {name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)}
    for volume in pod.get("volumes", []):
        found |= set(volume) - {"name"} - ALLOWED_VOLUMES
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        own = container.get("securityContext", {})
        context = {**pod.get("securityContext", {}), **own}
        found |= {"privileged"} if own.get("privileged") else set()
        found |= set() if own.get("allowPrivilegeEscalation") is False else {"allowPrivilegeEscalation"}
        found |= set() if context.get("runAsNonRoot") else {"runAsNonRoot"}
        found |= {"runAsNonRoot"} if context.get("runAsUser") == 0 else set()
        dropped = own.get("capabilities", {})
        if dropped.get("drop") != ["ALL"] or set(dropped.get("add", [])) - {"NET_BIND_SERVICE"}:
            found.add("capabilities")
        profile = context.get("seccompProfile", {}).get("type")
        found |= set() if profile in ("RuntimeDefault", "Localhost") else {"seccompProfile"}
        found |= {"hostPorts"} if any("hostPort" in port for port in container.get("ports", [])) else set()
    return found


def keeper_pod(backend: Backend, shared_memory: str = "") -> dict[str, Any]:
    unit = UnitSpec(
        name="a.chat.dram.n0",
        pool="a/chat",
        tier="SSD" if backend is Backend.FILE else "DRAM",
        size_bytes=1 << 20,
        backend=backend,
        path="/mnt/kv" if backend is Backend.FILE else "",
        generation=1,
    )
    keeper = KeeperSpec("chat-g1", "node-1", ObjectKey("a", "chat"), "uid", unit, 200 << 20)
    template = KeeperTemplate(
        "keeper:1", "kvpool-system", "kvpool-keeper", "/data/units", 65532, shared_memory
    )
    manifest = keeper_manifest(keeper, template)
    spec: dict[str, Any] = manifest["spec"]
    return spec


def pod_of(name: str) -> dict[str, Any]:
    if name == "keeper":
        return keeper_pod(Backend.TMPFS)
    kind = "Deployment" if name == "operator" else "DaemonSet"
    settings = ("agent.privileged=false",) if name == "agent without rights" else ()
    (found,) = of_kind(render(*settings), kind).values()
    spec: dict[str, Any] = found["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_a_pod_breaks_no_rule_but_those_listed_with_a_reason(name: str) -> None:
    assert broken_rules(pod_of(name)) == set(EXCEPTIONS[name])


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_no_pod_can_write_to_its_own_image(name: str) -> None:
    for container in pod_of(name)["containers"]:
        assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize("name", ["keeper", "agent"])
def test_only_the_operator_gets_a_token_for_the_api(name: str) -> None:
    assert pod_of("operator")["automountServiceAccountToken"] is True
    assert pod_of(name)["automountServiceAccountToken"] is False


def test_a_keeper_sees_its_units_folder_and_the_medium_of_its_file() -> None:
    def places(pod: dict[str, Any]) -> set[tuple[str, str]]:
        paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
        mounts = pod["containers"][0]["volumeMounts"]
        return {(paths[mount["name"]], mount["mountPath"]) for mount in mounts}

    units = ("/data/units", "/var/lib/kvpool/units")
    assert places(keeper_pod(Backend.TMPFS)) == {units}
    assert places(keeper_pod(Backend.TMPFS, "/dev/shm")) == {units, ("/dev/shm", "/dev/shm")}
    assert places(keeper_pod(Backend.FILE)) == {units, ("/mnt/kv", "/mnt/kv")}


def test_a_keepers_requests_are_its_limits() -> None:
    resources = keeper_pod(Backend.TMPFS)["containers"][0]["resources"]
    assert resources["requests"]["memory"] == resources["limits"]["memory"] == str(200 << 20)
