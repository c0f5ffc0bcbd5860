"""What this machine must have before a node of the cluster can be started, checked in one go."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from devcluster import sandbox
from devcluster.nodes.cgroups import ROOT
from devcluster.nodes.layout import HIDDEN_FOLDERS

# Program: the Debian package that has it.
PROGRAMS = {
    "conntrack": "conntrack",
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "nsenter": "util-linux",
    "runc": "runc",
    "socat": "socat",
    "unshare": "util-linux",
}
CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
CNI_PLUGINS = ("bridge", "host-local", "loopback", "portmap")
UID_MAP = Path("/proc/self/uid_map")
ALL_USERS = ["0", "0", str(2**32 - 1)]
CNI_PACKAGE = "containernetworking-plugins"


class NodesImpossibleError(Exception):
    """Real nodes cannot run here; one line says what is missing and what to do."""


def missing() -> str:
    """Why real nodes cannot run on this machine, whether in a sandbox or not yet; empty when they can."""
    if reason := obstacle():
        return reason
    if absent := absent_packages():
        return f"real nodes need programs that are missing here: apt-get install {' '.join(absent)}"
    return ""


def obstacle() -> str:
    """Why real nodes cannot run on this machine, whatever is installed; empty when there is no reason."""
    if not is_root():
        return "real nodes need root (containerd mounts and makes cgroups)"
    if not os.access(ROOT / "cpuset" / "cpuset.cpus", os.W_OK):
        return f"real nodes need cgroup v1, writable, under {ROOT}: this machine has it not"
    return ""


def absent_packages() -> list[str]:
    """Debian packages whose programs real nodes need and do not find."""
    absent = sorted({package for program, package in PROGRAMS.items() if shutil.which(program) is None})
    return absent if cni_folder() is not None else [*absent, CNI_PACKAGE]


def is_root() -> bool:
    """True for the machine's own root; root of a user namespace may not do what containerd does."""
    return os.geteuid() == 0 and UID_MAP.read_text().split() == ALL_USERS


def require(folders: Sequence[Path]) -> None:
    """Raise NodesImpossibleError unless nodes can be started now, with state and programs in `folders`."""
    reason = missing()
    if not reason and not sandbox.inside():
        reason = "real nodes live in a sandbox: python -m devcluster.sandbox -- COMMAND"
    if reason := reason or unseen(folders):
        raise NodesImpossibleError(reason)


def unseen(folders: Sequence[Path]) -> str:
    """Why nodes would not see one of the folders; empty when they see all."""
    for folder in folders:
        for hidden in HIDDEN_FOLDERS:
            if folder.resolve().is_relative_to(hidden):
                return f"{folder} is not seen by nodes, which have a {hidden} of their own"
    return ""


def cni_folder() -> Path | None:
    """Where the network plugins are; None when they are nowhere."""
    for folder in CNI_FOLDERS:
        if all((folder / plugin).exists() for plugin in CNI_PLUGINS):
            return folder
    return None
