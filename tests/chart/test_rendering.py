"""What the chart renders for the values that people give, and which values it refuses."""

from __future__ import annotations

import argparse
from typing import Any

import kubernetes_validate
import pytest
import yaml

from kvpool.settings import parse_settings
from kvpool_agent.settings import parse_arguments
from tests.chart.rendering import CHART, NAMESPACE, ROOT, helm, of_kind, render

KUBERNETES = "1.34"
MATRIX = {
    "the defaults": (),
    "two operators on their own nodes": (
        "operator.replicas=3",
        "operator.nodeSelector.class=infra",
        "operator.tolerations[0].operator=Exists",
    ),
    "an agent without rights": ("agent.privileged=false", "agent.ssdFolders={/mnt/a,/mnt/b}"),
    "monitoring": (
        "monitoring.podMonitor.enabled=true",
        "monitoring.prometheusRule.enabled=true",
        "monitoring.prometheusRule.labels.release=prometheus",
    ),
    "without CRDs": ("crds.install=false",),
    "simulated devices, SSD folders and pull secrets": (
        "mode=Enforce",
        "agent.devices=simulated:/var/lib/kvpool/devices.json",
        "agent.ssdFolders={/mnt/kv}",
        "image.pullSecrets[0].name=registry",
        "operator.extraServerNames={kvpool.example.com}",
    ),
    "devices that kubelet hands out": (
        "agent.devices=simulated:/var/lib/kvpool/devices.json",
        "agent.deviceResources={kvpool.dev/sim-accelerator}",
    ),
}
MISSPELT = {
    "mode=observe": "/mode",
    "operator.replica=2": "replica",
    "operator.replicas=0": "/operator/replicas",
    "agent.hostFolder=kvpool": "/agent/hostFolder",
    "agent.devices=nvml": "/agent/devices",
    "agent.deviceResources={sim-accelerator}": "/agent/deviceResources/0",
    "agent.podResources=kubelet.sock": "/agent/podResources",
    "agent.deviceResources={kvpool.dev/sim-accelerator}": "agent.devices is empty",
    "agent.ssdFolders={relative}": "/agent/ssdFolders/0",
    "keeper.userId=0": "/keeper/userId",
    "operator.ports.agent=70000": "/operator/ports/agent",
    "monitoring.podMonitors.enabled=true": "podMonitors",
}


def test_the_chart_passes_helms_strict_lint() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("settings", MATRIX.values(), ids=MATRIX.keys())
def test_everything_it_renders_is_a_valid_manifest(settings: tuple[str, ...]) -> None:
    documents = render(*settings)
    for document in documents:
        if document["apiVersion"] == "monitoring.coreos.com/v1":
            continue  # kinds of the Prometheus operator; their content is tested with promtool
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    names = [(found["kind"], found["metadata"]["name"]) for found in documents]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("setting", "named"), MISSPELT.items(), ids=MISSPELT.keys())
def test_a_misspelt_value_is_refused_by_name(setting: str, named: str) -> None:
    done = helm("template", "kvpool", str(CHART), "--set", setting)
    assert done.returncode != 0
    assert named.replace("/", ".").lstrip(".") in done.stderr or named in done.stderr, done.stderr


def test_every_value_is_in_the_schema_and_passes_it() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())

    def missing(value: Any, described: Any, path: str) -> list[str]:  # noqa: ANN401 - JSON
        if not isinstance(value, dict) or "properties" not in described:
            return []
        found = [f"{path}.{name}" for name in value if name not in described["properties"]]
        for name, inner in value.items():
            found += missing(inner, described["properties"].get(name, {}), f"{path}.{name}")
        return found

    assert missing(values, schema, "") == []


@pytest.mark.parametrize("settings", MATRIX.values(), ids=MATRIX.keys())
def test_every_flag_it_gives_is_one_that_the_programs_take(
    settings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_parser: argparse.ArgumentParser, message: str) -> None:
        raise AssertionError(message)

    monkeypatch.setattr(argparse.ArgumentParser, "error", refuse)
    documents = render(*settings)
    (operator,) = of_kind(documents, "Deployment").values()
    (agent,) = of_kind(documents, "DaemonSet").values()
    parse_settings(operator["spec"]["template"]["spec"]["containers"][0]["args"])
    told = parse_arguments(agent["spec"]["template"]["spec"]["containers"][0]["args"])
    assert told.tmpfs == ("shm" if "agent.privileged=false" in settings else "privileged")


def test_agents_see_the_folders_of_their_units_and_write_for_the_keepers_user() -> None:
    documents = render("agent.ssdFolders={/mnt/kv}", "keeper.userId=1234", "agent.hostFolder=/data/kvpool")
    (agent,) = of_kind(documents, "DaemonSet").values()
    (operator,) = of_kind(documents, "Deployment").values()
    pod = agent["spec"]["template"]["spec"]
    places = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: places[mount["name"]] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts["/mnt/kv"] == "/mnt/kv"
    assert mounts["/var/lib/kvpool"] == "/data/kvpool"
    assert "--keeper-uid=1234" in pod["containers"][0]["args"]
    told = operator["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"--host-units-folder=/data/kvpool/units", "--keeper-user-id=1234"} <= set(told)


def test_agents_see_kubelets_socket_only_when_they_are_to_ask_it_and_cannot_write_there() -> None:
    def kubelets(*settings: str) -> tuple[list[str], list[dict[str, Any]], list[dict[str, Any]]]:
        (agent,) = of_kind(render(*settings), "DaemonSet").values()
        pod = agent["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        args = [word for word in container["args"] if word.startswith(("--pod-", "--device-"))]
        mounts = [found for found in container["volumeMounts"] if found["name"] == "pod-resources"]
        return args, mounts, [found for found in pod["volumes"] if found["name"] == "pod-resources"]

    devices = "agent.devices=simulated:/var/lib/kvpool/devices.json"
    assert kubelets(devices) == (["--pod-uid=$(POD_UID)"], [], [])
    resources = "agent.deviceResources={kvpool.dev/sim-accelerator,example.com/gpu}"
    folder = "/var/lib/kubelet/pod-resources"
    assert kubelets(devices, resources, "agent.podResources=/data/kubelet/pod-resources") == (
        [
            "--pod-uid=$(POD_UID)",
            "--device-resources=kvpool.dev/sim-accelerator,example.com/gpu",
            f"--pod-resources={folder}/kubelet.sock",
            f"--pod-name={NAMESPACE}/$(POD_NAME)",
        ],
        [{"name": "pod-resources", "mountPath": folder, "readOnly": True}],
        [{"name": "pod-resources", "hostPath": {"path": "/data/kubelet/pod-resources", "type": "Directory"}}],
    )


def test_operator_agents_and_keepers_all_pull_with_the_same_secrets() -> None:
    documents = render("image.pullSecrets[0].name=registry")
    pods = [
        found["spec"]["template"]["spec"]
        for kind in ("Deployment", "DaemonSet")
        for found in of_kind(documents, kind).values()
    ]
    # The operator makes keeper pods: they get the secrets of their account.
    keeper = of_kind(documents, "ServiceAccount")["kvpool-keeper"]
    assert [found["imagePullSecrets"] for found in (*pods, keeper)] == [[{"name": "registry"}]] * 3
    assert "imagePullSecrets" not in of_kind(render(), "ServiceAccount")["kvpool-keeper"]


def test_the_chart_carries_exact_copies_of_definitions_and_alerts() -> None:
    sources = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    copies = {path.name: path.read_text() for path in (CHART / "files" / "crds").glob("*.yaml")}
    assert copies == sources
    assert (CHART / "files" / "alerts.yaml").read_text() == (ROOT / "alerts" / "alerts.yaml").read_text()


def test_definitions_are_kept_on_uninstall_unless_told_otherwise() -> None:
    kept = of_kind(render(), "CustomResourceDefinition")
    assert len(kept) == 7
    for found in kept.values():
        assert found["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    for found in of_kind(render("crds.keep=false"), "CustomResourceDefinition").values():
        assert "annotations" not in found["metadata"]


def test_the_rendered_alerts_are_the_source() -> None:
    (rule,) = of_kind(render("monitoring.prometheusRule.enabled=true"), "PrometheusRule").values()
    assert rule["spec"] == yaml.safe_load((ROOT / "alerts" / "alerts.yaml").read_text())
