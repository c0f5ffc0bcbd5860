"""Pods as plain processes: what a kubelet and a container runtime do with a Pod's spec, without either.

A container's command becomes a process of the host. Volumes become folders of the host, and mount paths in
arguments and environment are rewritten to them. Tokens are real bound tokens; they and ConfigMaps are kept up
to date. Images, users, capabilities and cgroups play no part: the real thing needs a real kubelet.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from devcluster.controlplane import ControlPlane
from devcluster.hostfiles import HostFiles
from devcluster.process import ManagedProcess, ProcessError
from devcluster.rest import JsonObject

PROGRAMS = Path(sys.executable).parent
TOKEN_SECONDS = 3600
API_ACCESS = "kube-api-access-"
"""Begins the name of the volume that the API server adds; a kubeconfig stands for it here."""
RENEW_AT = 0.8
"""The share of a token's life after which it is replaced, as kubelets do."""
_VARIABLE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class Host(Protocol):
    """The part of a host that running a Pod needs."""

    address: str
    folder: Path
    files: HostFiles

    def address_of(self, pod: JsonObject) -> str:
        """The Pod's address."""
        ...

    def start(
        self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> ManagedProcess:
        """Start a process that ends with the host."""
        ...


@dataclass
class PodProcesses:
    """Runs Pods of one control plane; an object of it is a host's `runner`, `refresh` its `refresh`.

    `programs` maps the first word of a container's command to another argv; words not named are looked up
    beside this Python. `extra_env` gives a Pod more environment (fault points, say).
    """

    plane: ControlPlane
    programs: Mapping[str, list[str]] = field(default_factory=dict)
    extra_env: Callable[[JsonObject], Mapping[str, str]] = lambda _: {}

    def __call__(self, host: Host, pod: JsonObject) -> ManagedProcess | None:
        """Start the process of a Pod's first container; None for a Pod that names no command.

        Raises ApiError for what the API refuses, OSError, and ProcessError for what cannot be had here.
        """
        container = pod["spec"]["containers"][0]
        if not container.get("command"):
            return None
        places = self._volumes(host, pod)
        mounts = {
            mount["mountPath"]: places[mount["name"]]
            for mount in container.get("volumeMounts", [])
            if mount["name"] in places
        }
        variables = environment(container, pod, host.address, host.address_of(pod))
        env = {name: rewritten(value, mounts) for name, value in variables.items()}
        words = [*container["command"], *container.get("args", [])]
        argv = [rewritten(expanded(word, variables), mounts) for word in words]
        env |= self._api_access(host, pod) | dict(self.extra_env(pod))
        program = self.programs.get(argv[0], [str(PROGRAMS / argv[0])])
        name = f"{pod['metadata']['name']}-{pod['metadata']['uid'][:5]}"
        return host.start(name, [*program, *argv[1:]], env)

    def refresh(self, host: Host, pod: JsonObject) -> None:
        """Bring ConfigMaps and tokens of a running Pod up to date. Raises ApiError."""
        for volume in _volumes_of(pod):
            folder = pod_folder(host, pod) / volume["name"]
            if "configMap" in volume:
                self._config_map(pod, volume["configMap"], folder)
            for source in volume.get("projected", {}).get("sources", []):
                self._project(pod, source, folder)

    def _volumes(self, host: Host, pod: JsonObject) -> dict[str, str]:
        """Make the Pod's volumes; return by name how the host's processes have to spell them."""
        places: dict[str, str] = {}
        for volume in _volumes_of(pod):
            name = volume["name"]
            folder = pod_folder(host, pod) / name
            places[name] = str(folder)
            if "hostPath" in volume:
                path = volume["hostPath"]["path"]
                folder, places[name] = host.files.outer(path), host.files.inner(path)
            folder.mkdir(parents=True, exist_ok=True)
            if "configMap" in volume:
                self._config_map(pod, volume["configMap"], folder)
            elif "projected" in volume:
                for source in volume["projected"]["sources"]:
                    self._project(pod, source, folder)
            elif not {"hostPath", "emptyDir"} & set(volume):
                kinds = sorted(set(volume) - {"name"})
                raise ProcessError(f"volume {name}: {', '.join(kinds)} cannot be had in process form")
        return places

    def _project(self, pod: JsonObject, source: JsonObject, folder: Path) -> None:
        if "serviceAccountToken" in source:
            self._token(pod, source["serviceAccountToken"], folder)
        elif "configMap" in source:
            self._config_map(pod, source["configMap"], folder)
        else:
            raise ProcessError(f"projected source {sorted(source)} cannot be had in process form")

    def _config_map(self, pod: JsonObject, source: JsonObject, folder: Path) -> None:
        namespace = pod["metadata"]["namespace"]
        found = self.plane.admin.find("v1", "ConfigMap", source["name"], namespace)
        if found is None and not source.get("optional", False):
            raise ProcessError(f'configmap "{source["name"]}" not found in namespace {namespace}')
        for key, text in ((found or {}).get("data") or {}).items():
            file = folder / key
            if not file.exists() or file.read_text() != text:
                _replace(file, text)

    def _token(self, pod: JsonObject, source: JsonObject, folder: Path) -> None:
        file = folder / source["path"]
        seconds = int(source.get("expirationSeconds", TOKEN_SECONDS))
        if file.exists() and time.time() - file.stat().st_mtime < RENEW_AT * seconds:
            return
        account = pod["spec"].get("serviceAccountName", "default")
        audience = source.get("audience")
        token = self.plane.token(pod["metadata"]["namespace"], account, audience, pod, seconds)
        _replace(file, token)

    def _api_access(self, host: Host, pod: JsonObject) -> dict[str, str]:
        """A kubeconfig with a token bound to the Pod, where its spec asks for one."""
        if not pod["spec"].get("automountServiceAccountToken", False):
            return {"KUBECONFIG": ""}  # what this process has itself is not for Pods
        path = pod_folder(host, pod) / "kubeconfig"
        path.parent.mkdir(parents=True, exist_ok=True)
        account = pod["spec"].get("serviceAccountName", "default")
        self.plane.service_account_kubeconfig(pod["metadata"]["namespace"], account, path, pod=pod)
        return {"KUBECONFIG": str(path)}


def pod_folder(host: Host, pod: JsonObject) -> Path:
    """Where a Pod's own volumes lie."""
    return host.folder.absolute() / "pods" / str(pod["metadata"]["uid"])


def _volumes_of(pod: JsonObject) -> list[JsonObject]:
    volumes = pod["spec"].get("volumes", [])
    return [volume for volume in volumes if not volume["name"].startswith(API_ACCESS)]


def environment(container: JsonObject, pod: JsonObject, host_address: str, address: str) -> dict[str, str]:
    """Return the variables of a container of the Pod at `address`. Raises ProcessError."""
    addresses = {"status.hostIP": host_address, "status.podIP": address}
    variables: dict[str, str] = {}
    for entry in container.get("env", []):
        source = entry.get("valueFrom", {})
        if "fieldRef" in source:
            variables[entry["name"]] = _field(source["fieldRef"]["fieldPath"], pod, addresses)
        elif source:
            raise ProcessError(f"env {entry['name']}: {sorted(source)} cannot be had in process form")
        else:
            variables[entry["name"]] = expanded(entry.get("value", ""), variables)
    return variables


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Kubernetes' `$(NAME)`; unknown names stay as they are."""
    return _VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)


def rewritten(text: str, mounts: Mapping[str, str]) -> str:
    """Mount paths at the start of `text`, or after `=`, `:` or `,`, become the places behind them."""
    if not mounts:
        return text
    longest_first = sorted(mounts, key=len, reverse=True)
    paths = "|".join(re.escape(mount) for mount in longest_first)
    return re.sub(rf"(^|[=:,])({paths})(?=/|[:,]|$)", lambda found: found[1] + mounts[found[2]], text)


def _field(path: str, pod: JsonObject, addresses: Mapping[str, str]) -> str:
    if path in addresses:
        return addresses[path]
    value: object = pod
    for word in path.split("."):
        if not isinstance(value, dict) or word not in value:
            raise ProcessError(f"fieldPath {path} is not in the Pod")
        value = value[word]
    return str(value)


def _replace(file: Path, text: str) -> None:
    """Write whole, readable by this user alone: readers see the old or the new text."""
    partial = file.with_name(f".{file.name}.new")
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.replace(file)
