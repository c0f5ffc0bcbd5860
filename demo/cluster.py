"""The cluster as the steps see it, in any form: four nodes with accelerators in two racks, and a fifth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from demo.accelerators import Accelerators
from demo.deployment import Deployment
from demo.forms import Form
from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject

INFRA = "node5"
"""Runs what is no engine: operators, the store's master, the gateway."""
RACKS = {"node1": "rack-a", "node2": "rack-a", "node3": "rack-b", "node4": "rack-b"}
DEVICES_A_NODE = 2
SSD_FOLDER = "/mnt/kv"


class Cluster(ABC):
    """A control plane and nodes. Methods that take a Pod take its object, with UID and status."""

    form: Form
    client_address: str
    """Of processes beside the cluster: what the replay's client calls itself by."""
    state_folder: str
    """Of the agent on each node: the chart's agent.hostFolder."""
    chart_values: Mapping[str, str]
    """What the chart is told here beside what it is told in any form."""
    accelerators: Mapping[str, Accelerators]
    """By node."""

    @property
    @abstractmethod
    def plane(self) -> ControlPlane:
        """The control plane."""

    @abstractmethod
    def existing_deployment(self) -> AbstractContextManager[Deployment]:
        """Start what is there before kvpool comes, wait until it serves, and end it when left.

        Raises ProcessError, ApiError or TimeoutError.
        """

    @abstractmethod
    def life_of(self, pod: JsonObject) -> str:
        """What tells one life of the Pod's process from the next; empty when none runs."""

    @abstractmethod
    def kill(self, pod: JsonObject) -> None:
        """End the Pod's process at once; the node starts it again."""

    @abstractmethod
    def memory_bytes(self, pod: JsonObject, unit_bytes: int) -> int:
        """What the Pod takes, with the `unit_bytes` that it holds for the store. Raises OSError."""

    @abstractmethod
    def take_away(self, node: str) -> None:
        """End a node at once, its address and every process, with nobody told; its objects stay."""

    @abstractmethod
    def lies_on(self, node: str, segment: str) -> bool:
        """Whether the store's segment of that name (host:port) is memory of the node or of a Pod there."""

    @abstractmethod
    def seen(self, node: str, path: str) -> Path:
        """A path of a node, mounts included, to read from here."""

    @abstractmethod
    def mounts(self, node: str) -> str:
        """The node's /proc/mounts. Raises OSError."""


def node_labels(node: str) -> dict[str, str]:
    """What a node says of itself: its rack and board, or that it is for infrastructure."""
    if node == INFRA:
        return {"kvpool.dev/class": "infra"}
    return {"pool": "gpu", "kvpool.dev/board": node.replace("node", "board-"), "kvpool.dev/rack": RACKS[node]}
