"""containerd in a node: its configuration, its start, and images loaded into it."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from devcluster.nodes.archives import base_name
from devcluster.nodes.layout import pod_addresses
from devcluster.nodes.member import Member
from devcluster.nodes.requirements import cni_folder
from devcluster.process import ManagedProcess, ProcessError

SOCKET = "/run/containerd/containerd.sock"
ROOT = "/var/lib/containerd"
START_SECONDS = 30.0
IMPORT_SECONDS = 300.0
CTR = ["ctr", "--namespace=k8s.io"]
BOOT_ID = "proc/sys/kernel/random/boot_id"
_CONFIG = """\
version = 2
root = "{root}"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{networks}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    base_runtime_spec = "{base_spec}"
"""


def start(member: Member, pause: str, boot_id: Path | None = None, processes: bool = True) -> ManagedProcess:
    """Start containerd in a member and return when it answers. Raises ProcessError.

    `pause` is the image that holds a pod's namespaces. Every container sees `boot_id` as its kernel's.
    `processes` is as `Member.enter` takes it.
    """
    config = _configured(member, pause, boot_id)
    containerd = member.spawn("containerd", ["containerd", f"--config={config}"], processes=processes)
    socket = member.root / SOCKET.removeprefix("/")
    containerd.wait_for(socket.is_socket, START_SECONDS, f"to serve {SOCKET}")
    return containerd


def import_image(member: Member, archive: Path, processes: bool = True) -> None:
    """Load an OCI or Docker archive under the names it gives. Raises ProcessError."""
    base = base_name(archive)
    named = [f"--base-name={base}"] if base else []
    command = [*member.enter(processes), *CTR, "images", "import", *named, "-"]
    try:
        with archive.open("rb") as stream:
            result = subprocess.run(
                command, stdin=stream, capture_output=True, text=True, timeout=IMPORT_SECONDS, check=False
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProcessError(f"{member.name}: {archive}: cannot be imported: {error}") from error
    if result.returncode != 0:
        raise ProcessError(f"{member.name}: {archive}: cannot be imported: {result.stderr.strip()}")


def _configured(member: Member, pause: str, boot_id: Path | None) -> Path:
    networks = member.folder / "networks"
    networks.mkdir(exist_ok=True)
    if boot_id is not None:
        (networks / "10-bridge.conflist").write_text(json.dumps(_network(pod_addresses(member.name))))
    base = member.folder / "base-spec.json"
    base.write_text(json.dumps(_base_spec(boot_id)))
    config = member.folder / "containerd.toml"
    config.write_text(
        _CONFIG.format(
            root=ROOT, socket=SOCKET, pause=pause, plugins=cni_folder(), networks=networks, base_spec=base
        )
    )
    return config


def _network(addresses: str) -> dict[str, object]:
    """Pods on a bridge of the node; handed-out addresses are forgotten at a power cut, as their pods are."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/cni-addresses",
            "ranges": [[{"subnet": addresses}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "devcluster", "plugins": [bridge, ports]}


@cache
def _default_spec() -> str:
    command = ["ctr", "oci", "spec"]
    return subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=True).stdout


def _base_spec(boot_id: Path | None) -> dict[str, Any]:
    """What every container starts from: containerd's own default and, as a hook, the node's boot id.

    All nodes share one kernel and so one boot id; on machines of their own each has one. The runtime refuses
    a mount below /proc, but a hook that runs before the container's root is entered may make it.
    """
    spec: dict[str, Any] = json.loads(_default_spec())
    del spec["process"]["rlimits"]  # the default's 1024 open files would stay
    if boot_id is not None:
        hook = {"path": "/bin/mount", "args": ["mount", "--bind", str(boot_id), BOOT_ID], "timeout": 5}
        spec["hooks"] = {"createContainer": [hook]}
    return spec
