"""The objects that the failover core reads and writes, and what an API server does with its writes."""

from dataclasses import dataclass, field
from typing import TypeVar

from kvpool.api import EngineSlot, KVNode, KVPool, PDGroup, Remap, Supernode, labels
from kvpool.api.common import OwnerReference
from kvpool.api.remap import RemapStatus
from kvpool.api.schema import Model
from kvpool.model import decisions as d
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant

_M = TypeVar("_M", EngineSlot, KVNode, Remap)


@dataclass
class Objects:
    """Everything that is stored, with versions. One leader writes, so no write conflicts with another's."""

    epoch: int
    """Of the operator that leads."""
    groups: dict[ObjectKey, PDGroup] = field(default_factory=dict)
    supernodes: dict[str, Supernode] = field(default_factory=dict)
    pools: dict[ObjectKey, KVPool] = field(default_factory=dict)
    kvnodes: dict[str, KVNode] = field(default_factory=dict)
    slots: dict[ObjectKey, EngineSlot] = field(default_factory=dict)
    remaps: dict[ObjectKey, Remap] = field(default_factory=dict)
    writes: int = 0

    def write(self, action: d.Action, now: Instant) -> None:
        """Carry out one decision.

        Raises ValueError for one that has no place where neither people nor groups change.
        """
        self.writes += 1
        match action:
            case d.CreateSlot():
                self._create_slot(action, now)
            case d.OwnSlot():
                owner = OwnerReference(kind="PDGroup", name=action.group, uid=action.group_uid)
                slot = self.slots[action.key]
                owned = slot.metadata.model_copy(update={"owner_references": (owner,)})
                self.slots[action.key] = self._changed(slot, metadata=owned)
            case d.OpenRemap():
                metadata = self._metadata(action.key, now)
                spec = action.spec.dump() | {"operatorEpoch": self.epoch}
                self.remaps[action.key] = Remap.parse({"metadata": metadata, "spec": spec})
            case d.ClaimDevices():
                self._claim(action)
            case d.ReleaseClaims():
                self._release(action)
            case d.BindSlot():
                spec_ = action.spec.model_copy(update={"operator_epoch": self.epoch})
                self.slots[action.key] = self._changed(self.slots[action.key], spec=spec_)
            case d.WriteSlotStatus():
                self.slots[action.key] = self._changed(self.slots[action.key], status=action.status)
            case d.WriteRemapStatus() | d.CancelRemap():
                self._remap_status(action.key, action.status)
            case d.DeleteRemap():
                del self.remaps[action.key]
            case _:
                raise ValueError(f"{type(action).__name__} has no place in a simulation of faults")

    def _create_slot(self, action: d.CreateSlot, now: Instant) -> None:
        metadata = self._metadata(action.key, now)
        metadata["finalizers"] = [labels.FENCE_FINALIZER]
        metadata["ownerReferences"] = [
            {"kind": "PDGroup", "name": action.spec.pd_group, "uid": action.group_uid}
        ]
        self.slots[action.key] = EngineSlot.parse({"metadata": metadata, "spec": action.spec.dump()})

    def _claim(self, action: d.ClaimDevices) -> None:
        node = self.kvnodes[action.node]
        taken = {claim.device for claim in action.claims}
        claims = (*(one for one in node.spec.claims if one.device not in taken), *action.claims)
        spec = node.spec.model_copy(update={"claims": claims, "operator_epoch": self.epoch})
        self.kvnodes[action.node] = self._changed(node, spec=spec)

    def _release(self, action: d.ReleaseClaims) -> None:
        node = self.kvnodes[action.node]
        lifted = {*action.lift_quarantine, *(entry.device for entry in action.quarantine)}
        kept = tuple(entry for entry in node.spec.quarantine if entry.device not in lifted)
        spec = node.spec.model_copy(
            update={
                "claims": tuple(one for one in node.spec.claims if one.device not in action.devices),
                "quarantine": (*kept, *action.quarantine),
                "operator_epoch": self.epoch,
            }
        )
        self.kvnodes[action.node] = self._changed(node, spec=spec)

    def _remap_status(self, key: ObjectKey, status: RemapStatus) -> None:
        self.remaps[key] = self._changed(self.remaps[key], status=status)

    def _metadata(self, key: ObjectKey, now: Instant) -> dict[str, object]:
        return {
            "name": key.name,
            "namespace": key.namespace,
            "uid": f"uid-{key.name}-{self.writes}",
            "resourceVersion": str(self.writes),
            "creationTimestamp": now.text(),
        }

    def _changed(self, stored: _M, **changes: Model) -> _M:
        changed = stored.model_copy(update=changes)
        metadata = changed.metadata.model_copy(update={"resource_version": str(self.writes)})
        return changed.model_copy(update={"metadata": metadata})
