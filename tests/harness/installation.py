"""kvpool installed by its own chart on a control plane with simulated hosts: what system tests start from.

Operator and agents run as the chart's Pods, with its arguments, ServiceAccounts and bound tokens; keepers are
the Pods that the operator creates. All of them are plain processes (see devcluster.podprocess).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devcluster import recipe
from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost
from devcluster.names import ServiceNames
from devcluster.podprocess import PodProcesses
from devcluster.process import ManagedProcess
from devcluster.rest import JsonObject
from tests.harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "kvpool"
DEVICES_FILE = "/var/lib/kvpool/devices.json"
HELM_SECONDS = 60


@dataclass
class Installation:
    """One release on one control plane (which needs controllers and scheduler).

    `operator_env` is given to operator Pods when they start, fault points for example; change it and kill the
    operator to start it with another one.
    """

    plane: ControlPlane
    folder: Path
    namespace: str = "kvpool-system"
    operator_env: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    hosts: dict[str, SimulatedHost] = field(default_factory=dict)
    _names: ServiceNames | None = None

    @property
    def runner(self) -> PodProcesses:
        """What hosts run Pods with."""
        return PodProcesses(self.plane, extra_env=self._env_of)

    def host_options(self) -> dict[str, Callable[..., object]]:
        """`runner` and `refresh`, as `add_host` takes them."""
        runner = self.runner
        return {"runner": runner, "refresh": runner.refresh}

    def install(self, mode: str = "Enforce", **values: str) -> Installation:
        """`helm install` (or upgrade) the chart, one operator replica on the node of class `infra`."""
        self.values |= {
            "mode": mode,
            "operator.replicas": "1",
            "operator.nodeSelector.kvpool\\.dev/class": "infra",
            "agent.nodeSelector.pool": "gpu",
            "agent.devices": f"simulated:{DEVICES_FILE}",
            # Keepers are processes of this user here, and a user namespace may know no other.
            "agent.extraArgs[0]": f"--keeper-uid={os.getuid()}",
            "agent.extraArgs[1]": f"--keeper-gid={os.getgid()}",
            **values,
        }
        self.plane.admin.request("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        self.helm("upgrade", "--install", "kvpool", str(CHART), *self._set_flags())
        admin = self.plane.admin
        admin.wait_until(
            lambda: bool(admin.resource("kvpool.dev/v1alpha1", "TierBudget")), 10, "our kinds to be served"
        )
        if self._names is None:
            self._names = ServiceNames(self.plane.admin, Path("/etc/hosts")).start()
        return self

    def helm(self, *arguments: str) -> str:
        """Run helm against this control plane; returns its output. Raises CalledProcessError."""
        helm, kubeconfig = str(recipe.binary("helm")), str(self.plane.kubeconfig)
        words = [helm, "--kubeconfig", kubeconfig, "-n", self.namespace]
        done = subprocess.run(
            [*words, *arguments], capture_output=True, text=True, timeout=HELM_SECONDS, check=False
        )
        if done.returncode != 0:
            raise AssertionError(f"helm {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def stop(self) -> None:
        """End what this object runs beside the hosts."""
        if self._names is not None:
            self._names.stop()

    # What tests look at

    def write_devices(self, host: str, devices: list[JsonObject]) -> None:
        """Say which simulated accelerators a host has and what is wrong with them."""
        file = self.hosts[host].files.outer(DEVICES_FILE)
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".new")
        partial.write_text(json.dumps({"devices": devices}))
        partial.replace(file)

    def process(
        self, component: str, host: str | None = None, deadline_seconds: float = 60
    ) -> ManagedProcess:
        """The process of the newest running Pod of `operator` or `agent` (on `host`).

        After an outage of the API server, controllers look again only after up to half a minute.
        """
        what = f"a running {component} on {host or 'any host'}"
        found = wait_until(lambda: self._processes(component, host), deadline_seconds, what)
        return found[-1]

    def _processes(self, component: str, host: str | None) -> list[ManagedProcess]:
        selector = f"app.kubernetes.io/component={component}"
        pods = self.plane.admin.list("v1", "Pod", self.namespace, label_selector=selector)
        found = []
        for pod in pods:
            owner = self.hosts.get(pod["spec"].get("nodeName", ""))
            if owner is None or (host is not None and owner.name != host):
                continue
            process = owner.process_of(pod)
            if process is not None and process.running:
                found.append(process)
        return found

    def _env_of(self, pod: JsonObject) -> Mapping[str, str]:
        labels = pod["metadata"].get("labels", {})
        return self.operator_env if labels.get("app.kubernetes.io/component") == "operator" else {}

    def _set_flags(self) -> list[str]:
        return [word for name, value in self.values.items() for word in ("--set", f"{name}={value}")]
