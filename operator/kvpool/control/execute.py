"""Carries out decisions: one function for each, each a single API write with a deadline.

The answer of a write is absorbed into the fact store before the next plan is made, so that no plan is made
on less than we wrote ourselves. A conflict is no failure: the object moved, and the next plan decides anew.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvpool.api import labels
from kvpool.api.schema import Model
from kvpool.cluster import writes
from kvpool.cluster.apply import Applier
from kvpool.cluster.errors import AlreadyExists, ApiError, Conflict, Gone, Retryable
from kvpool.cluster.resources import (
    CONFIG_MAPS,
    ENGINE_SLOTS,
    KV_NODES,
    PODS,
    REMAPS,
    Obj,
    Resource,
    Target,
)
from kvpool.cluster.rest import Rest
from kvpool.control import managers
from kvpool.control.event_target import OWN
from kvpool.control.facts import Facts, UnknownObjectError
from kvpool.control.faultpoints import FaultPoints
from kvpool.control.keeper_pod import KeeperTemplate, keeper_manifest
from kvpool.model import decisions as d
from kvpool.model.ids import ObjectKey


class NotLeadingError(Exception):
    """The Lease is not surely ours any more: nothing was written."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one action."""

    action: d.Action
    done: bool
    """False: the object had moved on, was gone, or the write failed; the next plan decides anew."""
    wrote: bool = False
    """Whether a request was sent that changed something; a status that is already there is not sent."""
    detail: str = ""
    error: ApiError | None = None
    """Why the write failed, when it was not for a moved object."""


class Executor:
    """Carries out actions one by one, only while `leads()`."""

    def __init__(
        self,
        rest: Rest,
        facts: Facts,
        keeper_template: KeeperTemplate,
        *,
        leads: Callable[[], bool],
        operator_epoch: Callable[[], int],
        faults: FaultPoints,
    ) -> None:
        self._rest = rest
        self._facts = facts
        self._keepers = keeper_template
        self._leads = leads
        self._epoch = operator_epoch
        self._faults = faults
        self._status = Applier(rest, managers.STATUS)
        self._handlers: Mapping[type, Callable[[Any], Awaitable[bool]]] = {
            d.SetUnits: self._set_units,
            d.CreateKVNode: self._create_kvnode,
            d.DeleteKVNode: self._delete_kvnode,
            d.CreateKeeper: self._create_keeper,
            d.DeleteKeeper: self._delete_keeper,
            d.CreateSlot: self._create_slot,
            d.OwnSlot: self._own_slot,
            d.DeleteSlot: self._delete_slot,
            d.ForgetSlot: self._forget_slot,
            d.OpenRemap: self._open_remap,
            d.ClaimDevices: self._claim_devices,
            d.BindSlot: self._bind_slot,
            d.ReleaseClaims: self._release_claims,
            d.CancelRemap: self._cancel_remap,
            d.DeleteRemap: self._delete_remap,
            d.TellRetired: self._tell_retired,
            d.WriteSlotStatus: self._write_slot_status,
            d.WriteRemapStatus: self._write_remap_status,
            d.WriteStatus: self._write_status,
        }

    async def run(self, actions: Sequence[d.Action]) -> list[Outcome]:
        """Carry out `actions` in order and return what became of each; one that fails holds up no other.

        Of one kind of action no further one is tried after one without an answer, as from an admission
        webhook that hangs: they would wait as long, and those of other kinds would never be reached.

        Raises:
            NotLeadingError: before a write, when the Lease may be lost.
        """
        outcomes: list[Outcome] = []
        unanswered: dict[type, ApiError] = {}
        for action in actions:
            error = unanswered.get(type(action))
            if error is not None:
                outcomes.append(Outcome(action, done=False, detail=f"not tried after {error}", error=error))
                continue
            outcomes.append(outcome := await self.run_one(action))
            if isinstance(outcome.error, Retryable) and not outcome.error.status:
                unanswered[type(action)] = outcome.error
        return outcomes

    async def run_one(self, action: d.Action) -> Outcome:
        """Carry out one action; see :meth:`run`."""
        if not self._leads():
            raise NotLeadingError(f"{type(action).__name__}: the leader Lease is not surely ours")
        name = type(action).__name__
        self._faults.reach("before", name)
        try:
            wrote = await self._handlers[type(action)](action)
        except (Conflict, Gone, UnknownObjectError) as moved:
            return Outcome(action, done=False, detail=str(moved))
        except ApiError as error:
            return Outcome(action, done=False, detail=str(error), error=error)
        self._faults.reach("after", name)
        return Outcome(action, done=True, wrote=wrote)

    # -- nodes and capacity

    async def _create_kvnode(self, action: d.CreateKVNode) -> bool:
        manifest = {
            "metadata": {"name": action.node, "labels": {labels.MANAGED_BY: labels.MANAGER}},
            "spec": {"operatorEpoch": self._epoch()},
        }
        return await self._create(KV_NODES, manifest, managers.CAPACITY)

    async def _delete_kvnode(self, action: d.DeleteKVNode) -> bool:
        # What was decided on is a node that holds nothing: one that took something since must stay.
        return await self._delete(KV_NODES.at(None, action.node), action.uid, action.resource_version)

    async def _set_units(self, action: d.SetUnits) -> bool:
        known = self._facts.raw(KV_NODES, None, action.node)
        revision = int(known.get("spec", {}).get("revision", 0)) + 1
        units = [unit.dump() for unit in action.units]
        spec = {"operatorEpoch": self._epoch(), "revision": revision, "units": units}
        return await self._swap(
            KV_NODES, None, action.node, {"spec": spec}, action.resource_version, managers.CAPACITY
        )

    async def _create_keeper(self, action: d.CreateKeeper) -> bool:
        return await self._create(PODS, keeper_manifest(action.keeper, self._keepers), managers.CAPACITY)

    async def _delete_keeper(self, action: d.DeleteKeeper) -> bool:
        return await self._delete(PODS.at(action.pod.namespace, action.pod.name), action.uid)

    # -- slots and moves

    async def _create_slot(self, action: d.CreateSlot) -> bool:
        spec = action.spec.dump() | {"operatorEpoch": self._epoch()}
        metadata: Obj = {
            "name": action.key.name,
            "namespace": action.key.namespace,
            "labels": {
                labels.MANAGED_BY: labels.MANAGER,
                labels.PDGROUP: action.spec.pd_group,
                labels.ROLE: action.spec.role.value,
            },
            "finalizers": [labels.FENCE_FINALIZER],
        }
        if action.group_uid:
            metadata["ownerReferences"] = [_owner("PDGroup", action.spec.pd_group, action.group_uid)]
        return await self._create(ENGINE_SLOTS, {"metadata": metadata, "spec": spec}, managers.FAILOVER)

    async def _own_slot(self, action: d.OwnSlot) -> bool:
        known = self._facts.raw(ENGINE_SLOTS, action.key.namespace, action.key.name)
        others = [
            owner for owner in known["metadata"].get("ownerReferences", []) if owner["kind"] != "PDGroup"
        ]
        ours = [_owner("PDGroup", action.group, action.group_uid)] if action.group_uid else []
        changes = {"metadata": {"ownerReferences": [*others, *ours]}}
        return await self._swap(
            ENGINE_SLOTS,
            action.key.namespace,
            action.key.name,
            changes,
            action.resource_version,
            managers.FAILOVER,
        )

    async def _delete_slot(self, action: d.DeleteSlot) -> bool:
        return await self._delete(ENGINE_SLOTS.at(action.key.namespace, action.key.name), action.uid)

    async def _forget_slot(self, action: d.ForgetSlot) -> bool:
        slot = self._facts.raw(ENGINE_SLOTS, action.key.namespace, action.key.name)
        if slot["metadata"]["resourceVersion"] != action.resource_version:
            raise UnknownObjectError(f"EngineSlot {action.key} is not the one that was decided on any more")
        # The answer is not absorbed: the object is gone, and only the watch knows in which order.
        await writes.remove_finalizer(
            self._rest, ENGINE_SLOTS, slot, labels.FENCE_FINALIZER, manager=managers.FAILOVER
        )
        return True

    async def _open_remap(self, action: d.OpenRemap) -> bool:
        metadata: Obj = {
            "name": action.key.name,
            "namespace": action.key.namespace,
            "labels": {labels.MANAGED_BY: labels.MANAGER, labels.SLOT: action.spec.slot},
            "ownerReferences": [_owner("EngineSlot", action.spec.slot, action.slot_uid)],
        }
        spec = action.spec.dump() | {"operatorEpoch": self._epoch()}
        return await self._create(REMAPS, {"metadata": metadata, "spec": spec}, managers.FAILOVER)

    async def _claim_devices(self, action: d.ClaimDevices) -> bool:
        known = self._facts.raw(KV_NODES, None, action.node)
        taken = {claim.device for claim in action.claims}
        kept = [claim for claim in known.get("spec", {}).get("claims", []) if claim["device"] not in taken]
        claims = kept + [claim.dump() for claim in action.claims]
        spec = {"operatorEpoch": self._epoch(), "claims": claims}
        return await self._swap(
            KV_NODES, None, action.node, {"spec": spec}, action.resource_version, managers.FAILOVER
        )

    async def _bind_slot(self, action: d.BindSlot) -> bool:
        spec = action.spec.dump() | {"operatorEpoch": self._epoch()}
        return await self._swap(
            ENGINE_SLOTS,
            action.key.namespace,
            action.key.name,
            {"spec": spec},
            action.resource_version,
            managers.FAILOVER,
        )

    async def _release_claims(self, action: d.ReleaseClaims) -> bool:
        known = self._facts.raw(KV_NODES, None, action.node).get("spec", {})
        claims = [claim for claim in known.get("claims", []) if claim["device"] not in action.devices]
        lifted = {*action.lift_quarantine, *(entry.device for entry in action.quarantine)}
        quarantine = [entry for entry in known.get("quarantine", []) if entry["device"] not in lifted]
        quarantine += [entry.dump() for entry in action.quarantine]
        spec = {"operatorEpoch": self._epoch(), "claims": claims, "quarantine": quarantine}
        return await self._swap(
            KV_NODES, None, action.node, {"spec": spec}, action.resource_version, managers.FAILOVER
        )

    async def _cancel_remap(self, action: d.CancelRemap) -> bool:
        return await self._apply_status(REMAPS, action.key, action.status)

    async def _delete_remap(self, action: d.DeleteRemap) -> bool:
        target = REMAPS.at(action.key.namespace, action.key.name)
        await writes.delete(self._rest, target, uid=action.uid)
        return True

    async def _tell_retired(self, action: d.TellRetired) -> bool:
        data = {labels.UNINSTALL_RETIRED: ",".join(action.nodes)}
        return await self._swap(
            CONFIG_MAPS,
            action.namespace,
            labels.UNINSTALL_CONFIG_MAP,
            {"data": data},
            action.resource_version,
            managers.FLEET,
        )

    # -- statuses

    async def _write_slot_status(self, action: d.WriteSlotStatus) -> bool:
        return await self._apply_status(ENGINE_SLOTS, action.key, action.status)

    async def _write_remap_status(self, action: d.WriteRemapStatus) -> bool:
        return await self._apply_status(REMAPS, action.key, action.status)

    async def _write_status(self, action: d.WriteStatus) -> bool:
        return await self._apply_status(OWN[action.kind], action.key, action.status)

    async def _apply_status(self, resource: Resource, key: ObjectKey, status: Model) -> bool:
        known = self._facts.raw(resource, key.namespace or None, key.name)
        metadata = {"name": key.name, "uid": known["metadata"]["uid"]}
        if key.namespace:
            metadata["namespace"] = key.namespace
        manifest = {"metadata": metadata, "status": status.dump()}
        applied = await self._status.apply_status(resource, manifest, current=known)
        if applied.sent:
            self._facts.store.absorb(resource, applied.obj)
        return applied.sent

    # -- the four kinds of write

    async def _create(self, resource: Resource, manifest: Obj, manager: str) -> bool:
        try:
            answer = await writes.create(self._rest, resource, manifest, manager=manager)
        except AlreadyExists:
            # Another leader, or an earlier try of ours whose answer was lost: the watch brings the object.
            return False
        self._facts.store.absorb(resource, answer)
        return True

    async def _swap(
        self, resource: Resource, namespace: str | None, name: str, changes: Obj, version: str, manager: str
    ) -> bool:
        answer = await writes.merge_guarded(
            self._rest, resource.at(namespace, name), changes, resource_version=version, manager=manager
        )
        self._facts.store.absorb(resource, answer)
        return True

    async def _delete(self, target: Target, uid: str, resource_version: str | None = None) -> bool:
        lingering = await writes.delete(self._rest, target, uid=uid, resource_version=resource_version)
        if lingering is not None:
            self._facts.store.absorb(target.resource, lingering)
        return True


def _owner(kind: str, name: str, uid: str) -> dict[str, Any]:
    return {
        "apiVersion": "kvpool.dev/v1alpha1",
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
