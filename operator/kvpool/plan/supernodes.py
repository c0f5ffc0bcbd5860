"""What a Supernode's status says: its devices by what they do, and whether spares are left."""

from kvpool.api.conditions import ConditionType, Verdict, merge_conditions
from kvpool.api.kvnode import DeviceVerdict
from kvpool.api.supernode import SpareCounts, Supernode, SupernodeDevices, SupernodeStatus
from kvpool.model.ids import DeviceRef
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import members_of
from kvpool.plan.draft import Draft
from kvpool.plan.liveness import HostState
from kvpool.plan.moves import devices_of, is_open
from kvpool.plan.permission import supernode_standing
from kvpool.plan.sizes import listed
from kvpool.plan.spares import device_ids, free_devices


def supernode_status(snapshot: Snapshot, supernode: Supernode, now: Instant) -> SupernodeStatus:
    """Return the Supernode's whole status. Pure; conditions that did not change keep their times."""
    draft = Draft(snapshot, now)
    nodes = members_of(snapshot, supernode)
    devices = _devices(draft, nodes)
    free = len(free_devices(draft, nodes))
    floor = supernode.spec.spares.floor
    generation = supernode.metadata.generation
    verdicts = _verdicts(draft, supernode, nodes, free)
    return SupernodeStatus(
        observed_generation=generation,
        nodes=len(nodes),
        devices=devices.model_copy(update={"spare": free}),
        spares=SpareCounts(ready=free, reserved=_reserved(draft, nodes), floor=floor),
        conditions=merge_conditions(supernode.status.conditions, verdicts, generation, now.text()),
    )


def _devices(draft: Draft, nodes: frozenset[str]) -> SupernodeDevices:
    """Active: holds a seat of a bound slot. Faulty: known to be, or in quarantine. Unknown: not heard of."""
    seated = {ref for slot in draft.snapshot.slots.values() for ref in devices_of(slot.spec.seats)}
    active = faulty = unknown = 0
    for node in nodes:
        agent = draft.snapshot.agents.get(node)
        quarantined = {entry.device for entry in draft.snapshot.kvnodes[node].spec.quarantine}
        for device in device_ids(agent) if agent is not None else ():
            verdict = draft.judgement.device(node, device).verdict
            if verdict is DeviceVerdict.FAULTY or device in quarantined:
                faulty += 1
            elif verdict is DeviceVerdict.UNKNOWN or draft.judgement.is_dead(node):
                unknown += 1
            elif DeviceRef(node, device) in seated:
                active += 1
    return SupernodeDevices(active=active, faulty=faulty, unknown=unknown)


def _reserved(draft: Draft, nodes: frozenset[str]) -> int:
    """Devices that moves under way are about to take."""
    slots = {(key.namespace, key.name): slot for key, slot in draft.snapshot.slots.items()}
    reserved: set[DeviceRef] = set()
    for key, remap in draft.snapshot.remaps.items():
        slot = slots.get((key.namespace, remap.spec.slot))
        if is_open(remap) and (slot is None or slot.spec.epoch != remap.spec.epoch):
            reserved.update(ref for ref in devices_of(remap.spec.to) if ref.node in nodes)
    return len(reserved)


def _verdicts(draft: Draft, supernode: Supernode, nodes: frozenset[str], free: int) -> list[Verdict]:
    found = [_ready(draft, nodes), _spares(supernode, free)]
    standing = supernode_standing(draft.snapshot, supernode)
    if standing.paused and standing.hold is not None:
        found.append(Verdict(ConditionType.PAUSED, True, "Paused", standing.hold.message))
    if standing.advises and standing.hold is not None:
        text = f"moves are decided and not carried out: {standing.hold.message}"
        found.append(Verdict(ConditionType.ACTION_WITHHELD, True, standing.hold.code, text))
    suspect = [
        node for node in nodes if draft.judgement.host(node).reason.code in ("MassExpiry", "QuietAfterOutage")
    ]
    if suspect:
        text = f"{listed(suspect)}: {draft.judgement.host(min(suspect)).reason.message}"
        found.append(Verdict(ConditionType.OBSERVER_SUSPECT, True, "LeasesLostTogether", text))
    return found


def _ready(draft: Draft, nodes: frozenset[str]) -> Verdict:
    if not nodes:
        text = "spec.nodeSelector matches no node that kvpool knows"
        return Verdict(ConditionType.READY, False, "NoNodes", text)
    dead = [node for node in nodes if draft.judgement.host(node).state is HostState.DEAD]
    if dead:
        text = f"{len(dead)} of {len(nodes)} hosts are dead: {listed(dead)}"
        return Verdict(ConditionType.READY, False, "HostDead", text)
    silent = [node for node in nodes if draft.judgement.host(node).state is not HostState.ALIVE]
    if silent:
        text = f"{len(silent)} of {len(nodes)} agents are not heard: {listed(silent)}"
        return Verdict(ConditionType.READY, None, "AgentsSilent", text)
    return Verdict(ConditionType.READY, True, "Watched", f"all {len(nodes)} hosts are alive")


def _spares(supernode: Supernode, free: int) -> Verdict:
    floor = supernode.spec.spares.floor
    if free == 0 and floor > 0:
        text = f"no spare device is left, spares.floor is {floor}: the next fault has nowhere to go"
        return Verdict(ConditionType.SPARES_LOW, True, "Exhausted", text)
    if free < floor:
        text = f"{free} spare devices are left, spares.floor is {floor}"
        return Verdict(ConditionType.SPARES_LOW, True, "BelowFloor", text)
    return Verdict(
        ConditionType.SPARES_LOW, False, "Enough", f"{free} spare devices, spares.floor is {floor}"
    )
