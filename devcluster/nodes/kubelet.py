"""kubelet in a node: its identity, its configuration, its start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from devcluster import recipe
from devcluster.controlplane import ControlPlane
from devcluster.kubeconfig import write_kubeconfig
from devcluster.nodes.layout import CLUSTER_DOMAIN, CONTROL_PLANE_ADDRESS, address
from devcluster.nodes.member import Member
from devcluster.nodes.runtime import SOCKET
from devcluster.nodes.settings import ClusterSettings
from devcluster.process import ManagedProcess

ROOT = "/var/lib/kubelet"
GROUP = "system:nodes"
EVICTION_BYTES = 100 * 1024**2
# A node's silence is seen in seconds: it is the lease that counts, renewed every quarter of its length.
FAST_REPORTS = {"nodeStatusUpdateFrequency": "2s", "nodeLeaseDurationSeconds": 4}
# A dead connection to the API server is seen after 8 s, not 45.
FAST_HTTP2 = {"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5", "HTTP2_PING_TIMEOUT_SECONDS": "3"}


def start(member: Member, plane: ControlPlane, settings: ClusterSettings, cgroup: str) -> ManagedProcess:
    """Start kubelet in a node whose containerd runs; `cgroup` is the parent of all its pods'."""
    name = member.name
    user = plane.as_user(f"system:node:{name}", [GROUP])
    kubeconfig = write_kubeconfig(member.folder / "kubelet.kubeconfig", user.credentials)
    config = member.folder / "kubelet.json"
    config.write_text(json.dumps(_configuration(member, plane, settings, cgroup)))
    arguments: list[str | Path] = [
        recipe.binary("kubelet"),
        f"--config={config}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={name}",
        f"--node-ip={address(name)}",
        f"--root-dir={ROOT}",
    ]
    labels = settings.labels.get(name)
    if labels:
        arguments.append("--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items()))
    env: Mapping[str, str] = {} if settings.node_grace_seconds is None else FAST_HTTP2
    return member.spawn("kubelet", arguments, env)


def _configuration(
    member: Member, plane: ControlPlane, settings: ClusterSettings, cgroup: str
) -> dict[str, Any]:
    certificate, key = plane.authority.serving(f"kubelet-{member.name}", [member.name, address(member.name)])
    resolver = member.folder / "resolv.conf"
    resolver.write_text(f"nameserver {CONTROL_PLANE_ADDRESS}\n")
    reserved = max(0, _memory_bytes() - settings.allocatable_bytes - EVICTION_BYTES)
    configuration: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "address": address(member.name),
        "tlsCertFile": str(certificate),
        "tlsPrivateKeyFile": str(key),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(plane.authority.certificate)},
        },
        "authorization": {"mode": "Webhook"},
        "failSwapOn": False,
        "clusterDomain": CLUSTER_DOMAIN,
        "clusterDNS": [CONTROL_PLANE_ADDRESS],
        "resolvConf": str(resolver),
        "systemReserved": {"memory": str(reserved)},
        "evictionHard": {
            "memory.available": str(EVICTION_BYTES),
            "nodefs.available": "1%",
            "imagefs.available": "1%",
        },
        "imageGCHighThresholdPercent": 100,
    }
    if settings.node_grace_seconds is not None:
        configuration.update(FAST_REPORTS)
    configuration.update(settings.kubelet)
    return configuration


def _memory_bytes() -> int:
    """The machine's memory, as every node on it sees it."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/meminfo has no MemTotal")
