"""Names and addresses of everything that hangs on the bridge, and what a node keeps for itself."""

from __future__ import annotations

import re

BRIDGE = "br0"
SWITCH_ADDRESS = "10.88.0.1"
NETWORK_BITS = 24
CONTROL_PLANE = "cp"
CONTROL_PLANE_ADDRESS = "10.88.0.2"
API_PORT = 6443
SERVICE_ADDRESSES = "10.96.0.0/16"
ALL_PODS = "10.89.0.0/16"
CLUSTER_DOMAIN = "cluster.local"
INDICES = range(1, 10)

# A node has these folders for itself: those in memory are lost at a power cut, those on disk are kept.
DISK_FOLDERS = ("/var/lib", "/var/log")
MEMORY_FOLDER = "/dev/shm"
RUN_FOLDER = "/run"
HIDDEN_FOLDERS = (*DISK_FOLDERS, MEMORY_FOLDER, RUN_FOLDER)


def node_index(name: str) -> int:
    """The number in a node's name. Raises ValueError unless it is node1 to node9."""
    match = re.fullmatch(r"node([1-9])", name)
    if match is None:
        raise ValueError(f"{name!r} is no name of a node: use node1 to node9")
    return int(match[1])


def node_names(count: int) -> list[str]:
    """Names of the first `count` nodes. Raises ValueError unless there are 1 to 9."""
    if count not in INDICES:
        raise ValueError(f"{count} nodes: use 1 to {INDICES[-1]}")
    return [f"node{index}" for index in range(1, count + 1)]


def address(member: str) -> str:
    """The address of a node or of the control plane on the bridge."""
    if member == CONTROL_PLANE:
        return CONTROL_PLANE_ADDRESS
    return f"10.88.0.1{node_index(member)}"


def hardware_address(member: str) -> str:
    """Always the same for a member, so that neighbours' ARP entries stay true when it is started again."""
    return f"02:00:00:00:00:{int(address(member).rsplit('.', 1)[1]):02x}"


def pod_addresses(node: str) -> str:
    """The range the node gives its pods addresses from."""
    return f"10.89.{node_index(node)}.0/24"


def pod_routes(but: str = "") -> list[str]:
    """`ip` batch lines that lead to the pods of every node but one (their own needs none)."""
    names = [f"node{index}" for index in INDICES]
    return [f"route replace {pod_addresses(name)} via {address(name)}" for name in names if name != but]
