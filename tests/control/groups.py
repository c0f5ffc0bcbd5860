"""Groups with one output, and weights for their slots."""

from __future__ import annotations

from collections.abc import Mapping

from kvpool.api import PDGroup
from kvpool.model.decisions import Reason, SlotWeight, Weights
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import PodFact

PORT = 8000
HTTP_ROUTE = {
    "name": "edge",
    "type": "HTTPRoute",
    "role": "Decode",
    "httpRoute": {"backends": "PerMember", "parentRef": {"name": "edge"}},
}
POD_LABEL = {
    "name": "labels",
    "type": "PodLabel",
    "role": "Decode",
    "podLabel": {"key": "example.com/serves"},
}


def a_group(namespace: str, output: Mapping[str, object], name: str = "chat") -> PDGroup:
    return PDGroup.parse(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "generation": 1},
            "spec": {
                "mode": "Enforce",
                "poolRef": {"name": "chat"},
                "decode": {"podSelector": {"matchLabels": {"role": "decode"}}, "port": PORT},
                "routing": {"outputs": [output], "onDelete": "FreezeLast"},
            },
        }
    )


def a_weight(namespace: str, slot: str, weight: int, pod_uid: str = "") -> SlotWeight:
    """A member with an endpoint."""
    number = sum(slot.encode()) % 250
    key = ObjectKey(namespace, slot)
    return SlotWeight(key, weight, f"10.0.0.{number}:{PORT}", pod_uid, Reason("Serving", ""))


def decode(group: PDGroup, *members: SlotWeight) -> list[Weights]:
    return [Weights(key_of(group), "Decode", members)]


def key_of(group: PDGroup) -> ObjectKey:
    return ObjectKey(group.metadata.namespace, group.metadata.name)


def a_pod_fact(namespace: str, name: str, uid: str) -> PodFact:
    return PodFact(ObjectKey(namespace, name), uid, {}, "node-1", "10.0.0.1", "Running", True, False, 0)
