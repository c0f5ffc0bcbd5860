"""The deployment's engines: which there are, and on which nodes."""

from __future__ import annotations

from dataclasses import dataclass

NAMESPACE = "inference"
ATTACH_SECONDS = 0.5


@dataclass(frozen=True)
class EnginePlace:
    """One engine: a `role` of decode, prefill or standby with one accelerator of a node."""

    name: str
    role: str
    node: str
    device: int
    """Number of the accelerator; on real nodes kubelet chooses which of the node's it is."""

    @property
    def port(self) -> int:
        """Its HTTP port: engines of one host may share its address."""
        return 8000 + self.device

    @property
    def store_port(self) -> int:
        """Second half of the name of its segment."""
        return 17001 + self.device


ENGINES = (
    EnginePlace("decode-a", "decode", "node1", 0),
    EnginePlace("prefill-a", "prefill", "node1", 1),
    EnginePlace("standby-1", "standby", "node2", 0),
    EnginePlace("standby-2", "standby", "node2", 1),
    EnginePlace("decode-b", "decode", "node3", 0),
    EnginePlace("standby-3", "standby", "node4", 0),
)
OWN_SEGMENTS = sum(engine.role != "standby" for engine in ENGINES)
