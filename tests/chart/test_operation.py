"""How the chart's pods are started, probed, told apart, drained and upgraded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, NAMESPACE, helm, of_kind, render

FIRST_VALUES = Path(__file__).parent / "first_values.yaml"
LABELS = {
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
}


def pod(component: str, *settings: str) -> dict[str, Any]:
    """The pod template of the operator or the agent."""
    kind = "Deployment" if component == "operator" else "DaemonSet"
    found: dict[str, Any] = of_kind(render(*settings), kind)[f"kvpool-{component}"]
    template: dict[str, Any] = found["spec"]["template"]
    return template


@pytest.mark.parametrize("component", ["operator", "agent"])
def test_a_slow_start_is_no_failure_and_a_hang_is_one_within_a_minute(component: str) -> None:
    (container,) = pod(component)["spec"]["containers"]
    start, life = container["startupProbe"], container["livenessProbe"]
    assert start["httpGet"] == life["httpGet"] == {"path": "/healthz", "port": "metrics"}
    assert start["periodSeconds"] * start["failureThreshold"] >= 120
    assert life["periodSeconds"] * life["failureThreshold"] <= 60
    assert "initialDelaySeconds" not in life, "the startup probe holds it back for as long as needed"
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}


def test_a_drain_of_nodes_takes_one_operator_at_a_time_and_is_never_blocked_by_one_alone() -> None:
    (budget,) = of_kind(render("operator.replicas=1"), "PodDisruptionBudget").values()
    (operators,) = of_kind(render(), "Deployment").values()
    assert budget["spec"]["selector"] == operators["spec"]["selector"]
    assert budget["spec"]["maxUnavailable"] == 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert of_kind(render("operator.podDisruptionBudget.enabled=false"), "PodDisruptionBudget") == {}


def test_operators_and_agents_are_not_what_makes_room_for_other_pods_and_people_may_say_otherwise() -> None:
    assert pod("operator")["spec"]["priorityClassName"] == "system-cluster-critical"
    assert pod("agent")["spec"]["priorityClassName"] == "system-node-critical"
    other = pod("operator", "operator.priorityClassName=high", "keeper.priorityClassName=higher")
    assert other["spec"]["priorityClassName"] == "high"
    assert "--keeper-priority-class=higher" in other["spec"]["containers"][0]["args"]
    assert not [word for word in pod("operator")["spec"]["containers"][0]["args"] if "priority" in word]
    assert "priorityClassName" not in pod("agent", "agent.priorityClassName=")["spec"]


def test_an_agent_stays_on_a_node_that_is_tainted_silent_or_not_ready() -> None:
    assert {"operator": "Exists"} in pod("agent")["spec"]["tolerations"]


def test_every_object_and_every_pod_carries_the_labels_that_people_select_by() -> None:
    documents = render("monitoring.podMonitor.enabled=true", "monitoring.prometheusRule.enabled=true")
    bare = [
        (found["kind"], found["metadata"]["name"])
        for found in documents
        if found["kind"] != "CustomResourceDefinition"
        and not set(found["metadata"].get("labels", {})) >= LABELS
    ]
    assert bare == []
    for component in ("operator", "agent"):
        labels = pod(component)["metadata"]["labels"]
        assert set(labels) >= LABELS
        assert labels["app.kubernetes.io/component"] == component


def test_an_upgrade_that_reuses_the_first_values_renders_what_the_defaults_do(tmp_path: Path) -> None:
    earlier = tmp_path / "kvpool"
    shutil.copytree(CHART, earlier)
    shutil.copy(FIRST_VALUES, earlier / "values.yaml")
    done = helm("template", "kvpool", str(earlier), "--namespace", NAMESPACE)
    assert done.returncode == 0, done.stderr
    assert [found for found in yaml.safe_load_all(done.stdout) if found] == render()


@pytest.mark.parametrize("component", ["operator", "agent"])
def test_pods_go_to_nodes_that_run_linux_and_to_those_of_them_that_people_choose(component: str) -> None:
    system, chosen = "kubernetes.io/os", f"{component}.nodeSelector"
    assert pod(component)["spec"]["nodeSelector"] == {system: "linux"}
    assert pod(component, f"{chosen}.pool=gpu")["spec"]["nodeSelector"] == {system: "linux", "pool": "gpu"}
    other = pod(component, f"{chosen}.kubernetes\\.io/os=other")
    assert other["spec"]["nodeSelector"] == {system: "other"}, "people have the last word"


def test_what_is_scraped_keeps_the_namespace_of_its_pool_and_names_its_node() -> None:
    documents = render("monitoring.podMonitor.enabled=true")
    (monitor,) = of_kind(documents, "PodMonitor").values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    assert endpoint["relabelings"] == [
        {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    ]
    chosen = monitor["spec"]["selector"]["matchLabels"].items()
    for component in ("operator", "agent"):
        assert pod(component)["metadata"]["labels"].items() >= chosen
        (container,) = pod(component)["spec"]["containers"]
        assert endpoint["port"] in [port["name"] for port in container["ports"]]
