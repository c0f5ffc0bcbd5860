"""Maintenance lists of Supernodes: which one a node belongs to, and how entries come and go. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from kvpool.api import KVNode, Supernode
from kvpool.cli.faults import CliError
from kvpool.model.observations import NodeFact
from kvpool.plan.sizes import listed

Entry = Mapping[str, Any]
"""One raw entry of `spec.maintenance`: node, devices (absent or empty: the whole node), reason."""


def supernode_for(node: str, nodes: Mapping[str, NodeFact], supernodes: Mapping[str, Supernode]) -> Supernode:
    """Return the Supernode that the operator takes the node to belong to: the first by name.

    Raises:
        CliError: for a node that is not there, or that no Supernode selects.
    """
    fact = nodes.get(node)
    if fact is None:
        raise CliError(f"node {node} does not exist; the nodes are {listed(nodes, most=8) or 'none'}")
    for name in sorted(supernodes):
        if supernodes[name].spec.node_selector.matches(fact.labels):
            return supernodes[name]
    known = listed(supernodes, most=8) or "none"
    raise CliError(
        f"node {node} belongs to no Supernode (there are: {known}): maintenance is listed in one; "
        "create a Supernode whose nodeSelector matches the node's labels"
    )


def check_device(node: str, device: str, kvnodes: Mapping[str, KVNode]) -> None:
    """Refuse a device that the node's agent does not report; a node that reported none is not judged.

    Raises:
        CliError: with the devices that there are.
    """
    known = [found.id for found in kvnodes[node].status.devices] if node in kvnodes else []
    if known and device not in known:
        raise CliError(f"node {node} has no device {device!r}; its devices are {listed(known, most=16)}")


def drained(entries: Sequence[Entry], node: str, device: str, reason: str) -> list[Entry]:
    """Return the list with a node (or one device of it) on it; the same list when it is there already."""
    why = {"reason": reason} if reason else {}
    found = next((entry for entry in entries if entry["node"] == node), None)
    if found is None:
        return [*entries, {"node": node} | ({"devices": [device]} if device else {}) | why]
    devices = list(found.get("devices") or ())
    if not devices or device in devices:
        return list(entries)
    wider = {**found, "devices": [*devices, device] if device else []} | why
    return [wider if entry is found else entry for entry in entries]


def undrained(entries: Sequence[Entry], node: str, device: str) -> list[Entry]:
    """Return the list without a node (or one device of it); equal to `entries` when it is not there.

    Raises:
        CliError: for one device of a node that is listed as a whole.
    """
    found = next((entry for entry in entries if entry["node"] == node), None)
    if found is None:
        return list(entries)
    others = [entry for entry in entries if entry is not found]
    if not device:
        return others
    devices = list(found.get("devices") or ())
    if not devices:
        raise CliError(f"node {node} is listed as a whole, not its device {device}: undrain {node}")
    left = [listed_device for listed_device in devices if listed_device != device]
    return [*others, {**found, "devices": left}] if left else others
