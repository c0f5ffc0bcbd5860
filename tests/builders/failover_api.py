"""A model API server for failover tests: objects with versions, and the rules the server itself enforces."""

# ruff: noqa: ANN401 - objects of all kinds pass through the same few functions

from __future__ import annotations

import re
from typing import Any

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode, labels
from kvpool.api.common import OwnerReference
from kvpool.model import decisions as d
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant


class ConflictError(Exception):
    """The API server refused a write: the object moved, exists, is gone, or a rule forbids it."""


class Api:
    """Objects with resourceVersions, and the rules that the API server itself enforces."""

    def __init__(self) -> None:
        self.groups: dict[ObjectKey, PDGroup] = {}
        self.supernodes: dict[str, Supernode] = {}
        self.pools: dict[ObjectKey, KVPool] = {}
        self.kvnodes: dict[str, KVNode] = {}
        self.slots: dict[ObjectKey, EngineSlot] = {}
        self.remaps: dict[ObjectKey, Remap] = {}
        self.operator_epoch = 0
        """Annotation of the leader Lease."""
        self.writes: list[tuple[str, str]] = []
        """Verb-like name and object of each write that was accepted."""
        self._version = 0

    def version(self) -> str:
        self._version += 1
        return str(self._version)

    def meta(self, obj: Any, **changes: Any) -> Any:
        metadata = obj.metadata.model_copy(update={"resource_version": self.version()})
        return obj.model_copy(update={"metadata": metadata, **changes})

    def write(self, action: d.Action, operator_epoch: int, now: Instant) -> None:
        """Carry out one decision of a leader of that epoch, or refuse it. Raises ConflictError."""
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", type(action).__name__).lower()
        getattr(self, f"_{name}")(action, operator_epoch, now)
        target = getattr(action, "key", None) or getattr(action, "node", "")
        self.writes.append((type(action).__name__, str(target)))

    def _create_slot(self, action: d.CreateSlot, operator_epoch: int, now: Instant) -> None:
        _refuse_if(action.key in self.slots, f"{action.key} exists")
        metadata: dict[str, Any] = {
            "name": action.key.name,
            "namespace": action.key.namespace,
            "uid": f"uid-{action.key.name}-{self.version()}",
            "resourceVersion": self.version(),
            "creationTimestamp": now.text(),
            "finalizers": [labels.FENCE_FINALIZER],
        }
        if action.group_uid:
            owner = {"kind": "PDGroup", "name": action.spec.pd_group, "uid": action.group_uid}
            metadata["ownerReferences"] = [owner]
        slot = EngineSlot.parse({"metadata": metadata, "spec": action.spec.dump()})
        self.slots[action.key] = slot

    def _own_slot(self, action: d.OwnSlot, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        _refuse_if(slot.metadata.resource_version != action.resource_version, "slot moved")
        owner = OwnerReference(kind="PDGroup", name=action.group, uid=action.group_uid)
        owners = (owner,) if action.group_uid else ()
        metadata = slot.metadata.model_copy(
            update={"owner_references": owners, "resource_version": self.version()}
        )
        self.slots[action.key] = slot.model_copy(update={"metadata": metadata})

    def _delete_slot(self, action: d.DeleteSlot, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        _refuse_if(slot.metadata.uid != action.uid, "another incarnation")
        metadata = slot.metadata.model_copy(
            update={"deletion_timestamp": now.text(), "resource_version": self.version()}
        )
        self.slots[action.key] = slot.model_copy(update={"metadata": metadata})

    def _forget_slot(self, action: d.ForgetSlot, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        _refuse_if(slot.metadata.resource_version != action.resource_version, "moved")
        del self.slots[action.key]
        self.remaps = {key: remap for key, remap in self.remaps.items() if remap.spec.slot != action.key.name}

    def _open_remap(self, action: d.OpenRemap, operator_epoch: int, now: Instant) -> None:
        _refuse_if(action.key in self.remaps, f"{action.key} exists")
        metadata = {
            "name": action.key.name,
            "namespace": action.key.namespace,
            "resourceVersion": self.version(),
            "creationTimestamp": now.text(),
        }
        spec = action.spec.dump() | {"operatorEpoch": operator_epoch}
        self.remaps[action.key] = Remap.parse({"metadata": metadata, "spec": spec})

    def _kvnode(self, node: str, version: str, operator_epoch: int) -> KVNode:
        kvnode = self.kvnodes[node]
        _refuse_if(kvnode.metadata.resource_version != version, f"KVNode {node} moved")
        _refuse_if(operator_epoch < kvnode.spec.operator_epoch, "operatorEpoch may not fall")
        return kvnode

    def _claim_devices(self, action: d.ClaimDevices, operator_epoch: int, now: Instant) -> None:
        kvnode = self._kvnode(action.node, action.resource_version, operator_epoch)
        taken = {claim.device for claim in action.claims}
        claims = (*(c for c in kvnode.spec.claims if c.device not in taken), *action.claims)
        spec = kvnode.spec.model_copy(update={"claims": claims, "operator_epoch": operator_epoch})
        self.kvnodes[action.node] = self.meta(kvnode, spec=spec)

    def _release_claims(self, action: d.ReleaseClaims, operator_epoch: int, now: Instant) -> None:
        kvnode = self._kvnode(action.node, action.resource_version, operator_epoch)
        lifted = {*action.lift_quarantine, *(entry.device for entry in action.quarantine)}
        spec = kvnode.spec.model_copy(
            update={
                "claims": tuple(c for c in kvnode.spec.claims if c.device not in action.devices),
                "quarantine": (
                    *(entry for entry in kvnode.spec.quarantine if entry.device not in lifted),
                    *action.quarantine,
                ),
                "operator_epoch": operator_epoch,
            }
        )
        self.kvnodes[action.node] = self.meta(kvnode, spec=spec)

    def _bind_slot(self, action: d.BindSlot, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        _refuse_if(slot.metadata.resource_version != action.resource_version, "slot moved")
        _refuse_if(operator_epoch < slot.spec.operator_epoch, "operatorEpoch may not fall")
        _refuse_if(action.spec.epoch <= slot.spec.epoch, "seats change: the epoch has to grow")
        spec = action.spec.model_copy(update={"operator_epoch": operator_epoch})
        self.slots[action.key] = self.meta(slot, spec=spec)

    def _cancel_remap(self, action: d.CancelRemap, operator_epoch: int, now: Instant) -> None:
        self._set_remap_status(action.key, action.status)

    def _delete_remap(self, action: d.DeleteRemap, operator_epoch: int, now: Instant) -> None:
        _refuse_if(action.key not in self.remaps, f"{action.key} is gone")
        _refuse_if(self.remaps[action.key].metadata.uid != action.uid, "another incarnation")
        del self.remaps[action.key]

    def _write_remap_status(self, action: d.WriteRemapStatus, operator_epoch: int, now: Instant) -> None:
        self._set_remap_status(action.key, action.status)

    def _set_remap_status(self, key: ObjectKey, status: Any) -> None:
        _refuse_if(key not in self.remaps, f"{key} is gone")
        remap = self.remaps[key]
        _refuse_if(remap.status.phase.is_final, f"{key} is over: its status is final")
        self.remaps[key] = self.meta(remap, status=status)

    def _write_slot_status(self, action: d.WriteSlotStatus, operator_epoch: int, now: Instant) -> None:
        slot = self._slot(action.key)
        self.slots[action.key] = self.meta(slot, status=action.status)

    def _slot(self, key: ObjectKey) -> EngineSlot:
        _refuse_if(key not in self.slots, f"{key} is gone")
        return self.slots[key]


def _refuse_if(refused: bool, why: str) -> None:
    if refused:
        raise ConflictError(why)
