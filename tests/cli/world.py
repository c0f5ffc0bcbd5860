"""A small cluster on the real API server, as an operator would have left it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject
from tests.cli.conftest import ago, condition, own, put

GIB = 1 << 30
FATAL = {
    "source": "nvml",
    "code": "48",
    "class": "Fatal",
    "count": 1,
    "firstSeen": ago(5),
    "lastSeen": ago(5),
}


@dataclass(frozen=True, slots=True)
class World:
    """Names of what is there; cluster-scoped ones are this test's own."""

    plane: ControlPlane
    namespace: str
    mark: str
    """A label value that only this world's nodes carry."""

    @property
    def supernode(self) -> str:
        return f"sn-{self.mark}"

    def node(self, number: int) -> str:
        """Name of a node."""
        return f"node-{self.mark}-{number}"

    def put_node(self, number: int, *, devices: list[JsonObject] | None = None, **spec: object) -> str:
        """A ready Node with 256Gi and its KVNode, whose agent reported just now."""
        name = self.node(number)
        labels = {"mark": self.mark, "kvpool.dev/board": f"board-{number}", "kvpool.dev/rack": "r1"}
        node: JsonObject = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {
                "allocatable": {"memory": "256Gi"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": f"10.9.0.{number}"}],
            },
        }
        put(self.plane, node)
        source = {
            "key": "dram/n0",
            "tier": "DRAM",
            "backend": "tmpfs",
            "numaNode": 0,
            "capacity": "256Gi",
            "free": "256Gi",
        }
        status: JsonObject = {
            "bootID": "boot",
            "incarnation": 1,
            "agentVersion": "0.1.0",
            "lastReport": ago(3),
            "sources": [source],
            "devices": [{"id": "0", "verdict": "Healthy"}] if devices is None else devices,
            "conditions": [
                condition("AgentConnected", "True", "Connected"),
                condition("LeaseHeld", "True", "Granted"),
            ],
        }
        put(self.plane, own("KVNode", name, dict(spec), status=status))
        return name

    def put_supernode(self, mode: str = "Enforce") -> None:
        """The Supernode of all of this world's nodes."""
        selector = {"matchLabels": {"mark": self.mark}}
        put(self.plane, own("Supernode", self.supernode, {"mode": mode, "nodeSelector": selector}))

    def put_budget(self, per_node: str = "64Gi") -> None:
        """A budget for all of this world's nodes."""
        selector = {"matchLabels": {"mark": self.mark}}
        tier = {"name": "DRAM", "perNode": per_node, "reserve": "8Gi"}
        spec = {"mode": "Enforce", "nodeSelector": selector, "tiers": [tier]}
        put(self.plane, own("TierBudget", f"budget-{self.mark}", spec))

    def pool(self, size: str, mode: str = "Enforce") -> JsonObject:
        """A pool on this world's nodes alone; not stored yet."""
        spec: JsonObject = {
            "mode": mode,
            "nodeSelector": {"matchLabels": {"mark": self.mark}},
            "tiers": [{"name": "DRAM", "size": size}],
            "store": {"none": {}},
        }
        return own("KVPool", "chat", spec, self.namespace)

    def put_group(self, mode: str = "Enforce") -> None:
        """A group of one decode slot."""
        decode = {"podSelector": {"matchLabels": {"app": "decode"}}, "instances": 1}
        spec = {
            "mode": mode,
            "poolRef": {"name": "chat"},
            "supernodeRef": {"name": self.supernode},
            "decode": decode,
        }
        put(self.plane, own("PDGroup", "chat", spec, self.namespace))

    def put_slot(self, number: int, device: str = "0") -> None:
        """Slot chat-decode-0, bound to a device of a node, with an engine that serves."""
        seats = [{"index": 0, "node": self.node(number), "devices": [device]}]
        spec = {
            "operatorEpoch": 3,
            "pdGroup": "chat",
            "role": "Decode",
            "instance": 0,
            "seats": seats,
            "epoch": 3145729,
        }
        attached = {
            "podUID": "uid-1",
            "podName": f"{self.namespace}/decode-0",
            "endpoint": "10.0.0.1:8000",
            "epoch": 3145729,
        }
        status: JsonObject = {
            "attached": attached,
            "weightAsked": 100,
            "weightAcknowledged": 100,
            "conditions": [condition("Serving", "True", "Serving")],
        }
        put(self.plane, own("EngineSlot", "chat-decode-0", spec, self.namespace, status=status))


def claim(namespace: str, device: str = "0") -> JsonObject:
    """A claim of the slot on a device."""
    return {
        "device": device,
        "slot": f"{namespace}/chat-decode-0",
        "remap": "chat-decode-0-0-1",
        "epoch": 3145729,
    }


def new_mark() -> str:
    """A label value that nobody else has."""
    return secrets.token_hex(3)
