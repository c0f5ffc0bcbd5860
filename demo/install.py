"""kvpool itself: installed with its chart, and its mode raised, as a person would."""

from __future__ import annotations

from demo import places
from demo.accelerators import FILE
from demo.cluster import SSD_FOLDER, Cluster
from demo.commands import Commands
from devcluster.rest import JsonObject

NAMESPACE = "kvpool-system"
RELEASE = "kvpool"
READY_SECONDS = 120.0
DEVICES_IN_POD = f"simulated:/var/lib/kvpool/{FILE}"


def install(cluster: Cluster, commands: Commands) -> None:
    """Install the chart in mode Observe. Raises CommandFailedError."""
    values = {
        "mode": "Observe",
        "operator.replicas": "1",
        "operator.nodeSelector.kvpool\\.dev/class": "infra",
        "agent.nodeSelector.pool": "gpu",
        "agent.hostFolder": cluster.state_folder,
        "agent.devices": DEVICES_IN_POD,
        "agent.ssdFolders[0]": SSD_FOLDER,
        **cluster.chart_values,
    }
    settings = [f"--set={name}={value}" for name, value in values.items()]
    chart = str(places.CHART.relative_to(places.CHART.parents[1]))
    commands.helm("install", RELEASE, chart, f"--namespace={NAMESPACE}", "--create-namespace", *settings)


def raise_cap(commands: Commands) -> None:
    """Let kvpool act. Raises CommandFailedError."""
    chart = str(places.CHART.relative_to(places.CHART.parents[1]))
    commands.helm(
        "upgrade", RELEASE, chart, f"--namespace={NAMESPACE}", "--reuse-values", "--set=mode=Enforce"
    )


def wait_until_ready(commands: Commands) -> None:
    """Wait as a person would. Raises CommandFailedError."""
    for workload in ("deployment/kvpool-operator", "daemonset/kvpool-agent"):
        timeout = f"--timeout={READY_SECONDS:.0f}s"
        commands.kubectl("rollout", "status", workload, f"--namespace={NAMESPACE}", timeout)


def pods_of(cluster: Cluster, component: str) -> list[JsonObject]:
    """The Pods of one component: operator, agent or keeper. Raises ApiError."""
    selector = f"app.kubernetes.io/component={component}"
    return cluster.plane.admin.list("v1", "Pod", NAMESPACE, selector)
