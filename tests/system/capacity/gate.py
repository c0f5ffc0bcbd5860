"""Keeps keepers from starting until a test lets them."""

from __future__ import annotations

from dataclasses import dataclass, field

from devcluster.hosts import SimulatedHost
from devcluster.process import ProcessError
from devcluster.rest import JsonObject
from kvpool.api import labels


@dataclass
class Gate:
    """Holds keepers of some nodes back before they start; their Pods say so and wait."""

    nodes: set[str] = field(default_factory=set)

    def check(self, host: SimulatedHost, pod: JsonObject) -> None:
        """Raise ProcessError for a keeper on a node that is held back."""
        if pod["metadata"]["labels"].get(labels.COMPONENT) == "keeper" and host.name in self.nodes:
            raise ProcessError("held back by the test")
