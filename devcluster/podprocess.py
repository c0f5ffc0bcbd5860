"""Pods as plain processes: what a kubelet and a container runtime do with a Pod's spec, without either.

A container's command becomes a process of the host. Volumes become folders below the host's own folder, and
mount paths in arguments and environment are rewritten to them. Tokens are real bound tokens, ConfigMaps are
kept up to date. Images, users, capabilities and cgroups play no part: the real thing needs a real kubelet.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from devcluster.controlplane import ControlPlane
from devcluster.process import ManagedProcess
from devcluster.rest import JsonObject

PROGRAMS = Path(sys.executable).parent
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class Host(Protocol):
    """The part of a host that running a Pod needs."""

    name: str
    address: str
    folder: Path

    def start(self, name: str, argv: list[str], env: Mapping[str, str] | None = None) -> ManagedProcess:
        """Start a process that ends with the host."""
        ...


@dataclass
class PodProcesses:
    """Runs Pods of one control plane.

    `programs` maps the first word of a container's command to another argv; words not named are looked up
    beside this Python. `extra_env` gives a Pod more environment (fault points, say).
    """

    plane: ControlPlane
    programs: Mapping[str, list[str]] = field(default_factory=dict)
    extra_env: Callable[[JsonObject], Mapping[str, str]] = lambda _: {}

    def __call__(self, host: Host, pod: JsonObject) -> ManagedProcess | None:
        """Start the process of a Pod's first container; None for a Pod that names no command."""
        container = pod["spec"]["containers"][0]
        if not container.get("command"):
            return None
        folders = self._volumes(host, pod)
        mounts = {
            mount["mountPath"]: folders[mount["name"]]
            for mount in container.get("volumeMounts", [])
            if mount["name"] in folders
        }
        variables = _environment(container, pod, host)
        env = {name: _rewritten(value, mounts) for name, value in variables.items()}
        words = [*container["command"], *container.get("args", [])]
        argv = [_rewritten(_expanded(word, variables), mounts) for word in words]
        env |= self._api_access(host, pod) | dict(self.extra_env(pod))
        program = self.programs.get(argv[0], [str(PROGRAMS / argv[0])])
        name = f"{pod['metadata']['name']}-{pod['metadata']['uid'][:5]}"
        return host.start(name, [*program, *argv[1:]], env)

    def refresh(self, host: Host, pod: JsonObject) -> None:
        """Bring ConfigMap volumes of a running Pod up to date."""
        for volume in pod["spec"].get("volumes", []):
            if "configMap" in volume:
                self._config_map(pod, volume, pod_folder(host, pod) / volume["name"])

    def _volumes(self, host: Host, pod: JsonObject) -> dict[str, Path]:
        folders: dict[str, Path] = {}
        for volume in pod["spec"].get("volumes", []):
            folder = pod_folder(host, pod) / volume["name"]
            if "hostPath" in volume:
                folder = host_path(host, volume["hostPath"]["path"])
            folder.mkdir(parents=True, exist_ok=True)
            if "configMap" in volume:
                self._config_map(pod, volume, folder)
            for source in volume.get("projected", {}).get("sources", []):
                if "serviceAccountToken" in source:
                    self._token(pod, source["serviceAccountToken"], folder)
            folders[volume["name"]] = folder
        return folders

    def _config_map(self, pod: JsonObject, volume: JsonObject, folder: Path) -> None:
        found = self.plane.admin.find(
            "v1", "ConfigMap", volume["configMap"]["name"], pod["metadata"]["namespace"]
        )
        for key, text in ((found or {}).get("data") or {}).items():
            file = folder / key
            if not file.exists() or file.read_text() != text:
                partial = folder / f".{key}.new"
                partial.write_text(text)
                partial.replace(file)

    def _token(self, pod: JsonObject, source: JsonObject, folder: Path) -> None:
        token = self.plane.token(
            pod["metadata"]["namespace"],
            pod["spec"].get("serviceAccountName", "default"),
            audience=source.get("audience"),
            pod=pod,
            seconds=int(source.get("expirationSeconds", 3600)),
        )
        (folder / source["path"]).write_text(token)

    def _api_access(self, host: Host, pod: JsonObject) -> dict[str, str]:
        """A kubeconfig with a token bound to the Pod, where its spec asks for one."""
        if not pod["spec"].get("automountServiceAccountToken", False):
            return {"KUBECONFIG": ""}  # what this process has itself is not for Pods
        path = pod_folder(host, pod) / "kubeconfig"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.plane.service_account_kubeconfig(
            pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"], path, pod=pod
        )
        return {"KUBECONFIG": str(path)}


def pod_folder(host: Host, pod: JsonObject) -> Path:
    """Where a Pod's own volumes lie."""
    return host.folder / "pods" / str(pod["metadata"]["uid"])


def host_path(host: Host, path: str) -> Path:
    """Where a path of the host lies."""
    return host.folder / "root" / path.lstrip("/")


def _environment(container: JsonObject, pod: JsonObject, host: Host) -> dict[str, str]:
    variables: dict[str, str] = {}
    for entry in container.get("env", []):
        if "value" in entry:
            variables[entry["name"]] = _expanded(entry["value"], variables)
        elif "fieldRef" in entry.get("valueFrom", {}):
            variables[entry["name"]] = _field(entry["valueFrom"]["fieldRef"]["fieldPath"], pod, host)
    return variables


def _field(path: str, pod: JsonObject, host: Host) -> str:
    if path in ("status.podIP", "status.hostIP"):
        return host.address
    value: object = pod
    for word in path.split("."):
        value = value[word] if isinstance(value, dict) else ""
    return str(value)


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """Kubernetes' `$(NAME)`; unknown names stay as they are."""
    return _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)


def _rewritten(text: str, mounts: Mapping[str, Path]) -> str:
    """Mount paths at the start of `text`, or after `=`, `:` or `,`, become the folders behind them."""
    for mount in sorted(mounts, key=len, reverse=True):
        replaced = re.sub(rf"(^|[=:,]){re.escape(mount)}(?=/|$)", rf"\g<1>{mounts[mount]}", text)
        if replaced != text:
            return replaced
    return text

