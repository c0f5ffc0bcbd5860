"""Writes a Supernode's maintenance list: read, changed, and written only on what was read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.api import KVNode, Supernode
from kvpool.api.common import Mode
from kvpool.cli import clock
from kvpool.cli.cluster_state import list_resource
from kvpool.cli.faults import CliError
from kvpool.cli.maintenance import Entry, check_device, supernode_for
from kvpool.cli.pausing import MANAGER
from kvpool.cluster.errors import Conflict
from kvpool.cluster.reads import get
from kvpool.cluster.resources import KV_NODES, NODES, SUPERNODES, Obj
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import json_patch
from kvpool.world.build import Objects, read_objects

ATTEMPTS: Final = 5
"""How often the list is read and written again when somebody else changed it meanwhile."""

Change = Callable[[Sequence[Entry]], list[Entry]]


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the list."""

    supernode: str
    changed: bool
    mode: Mode


async def change_maintenance(rest: Rest, node: str, device: str, change: Change) -> Written:
    """Change the list of the node's Supernode. Raises CliError when there is none, else ApiError."""
    supernode = await _supernode(rest, node, device)
    name = supernode.metadata.name
    for _ in range(ATTEMPTS):
        found = await get(rest, SUPERNODES.at(name=name))
        entries: list[Entry] = found["spec"].get("maintenance") or []
        wanted = change(entries)
        if wanted == entries:
            return Written(name, changed=False, mode=supernode.spec.mode)
        try:
            await _write(rest, found, wanted)
        except Conflict:
            continue
        return Written(name, changed=True, mode=supernode.spec.mode)
    raise CliError(f"Supernode {name}: others changed it {ATTEMPTS} times meanwhile, nothing was written")


async def _supernode(rest: Rest, node: str, device: str) -> Supernode:
    raws = [raw for resource in (NODES, SUPERNODES, KV_NODES) for raw in await list_resource(rest, resource)]
    objects: Objects = read_objects(raws, clock.now())
    if device:
        check_device(node, device, objects.named(KVNode))
    return supernode_for(node, objects.nodes, objects.named(Supernode))


async def _write(rest: Rest, found: Obj, wanted: list[Entry]) -> None:
    """Replace the list if it is still as it was read; status writes of others do not get in the way."""
    metadata, path = found["metadata"], "/spec/maintenance"
    guard = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
    if "maintenance" in found["spec"]:
        unchanged = {"op": "test", "path": path, "value": found["spec"]["maintenance"]}
    else:  # an absent list has no value to test
        unchanged = {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
    operations = [guard, unchanged, {"op": "add", "path": path, "value": wanted}]
    await json_patch(rest, SUPERNODES.of(found), operations, manager=MANAGER)
