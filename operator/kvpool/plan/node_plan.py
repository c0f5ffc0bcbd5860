"""All that one node is to hold: units, seats whose claim and slot agree, and the guard group."""

from kvpool.api.common import Mode
from kvpool.api.kvnode import UnitSpec
from kvpool.api.kvpool import OnRestart
from kvpool.api.supernode import FenceLevel, LeasePolicy
from kvpool.model.ids import ObjectKey
from kvpool.model.nodeplan import (
    LeaseTerms,
    MooncakeTarget,
    NodePlanData,
    PlannedSeat,
    PlannedUnit,
    RosterMember,
)
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import board_of, guard_group, lease_terms, policy_of, supernode_of
from kvpool.plan.moves import Moves, is_open, slot_of


def node_plan(snapshot: Snapshot, node: str) -> NodePlanData | None:
    """Return the node's whole plan.

    None while something in it is not known yet (no KVNode, or a store without address): the node then keeps
    the plan it has, as an incomplete one would take things away.
    """
    kvnode = snapshot.kvnodes.get(node)
    if kvnode is None:
        return None
    units = [_unit(snapshot, node, unit) for unit in sorted(kvnode.spec.units, key=lambda unit: unit.name)]
    if any(unit is None for unit in units):
        return None
    moves = Moves(snapshot)
    terms = lease_terms(snapshot, node)
    return NodePlanData(
        node=node,
        operator_epoch=snapshot.leadership.operator_epoch,
        units=tuple(unit for unit in units if unit is not None),
        seats=_seats(snapshot, moves, node),
        roster=_roster(snapshot, node),
        lease=LeaseTerms(terms.ttl_seconds, terms.max_skew_seconds, terms.policy is LeasePolicy.STRICT),
        hold=_hold(snapshot, node),
    )


def _unit(snapshot: Snapshot, node: str, unit: UnitSpec) -> PlannedUnit | None:
    """Return the unit with its store; None when the store's address is not known yet."""
    if unit.store is None and _wants_store(snapshot, unit):
        return None
    policy = policy_of(supernode_of(snapshot, node))
    strict = policy.lease.policy is LeasePolicy.STRICT
    return PlannedUnit(
        name=unit.name,
        pool=unit.pool,
        tier=unit.tier,
        size_bytes=unit.size_bytes,
        numa_node=unit.numa_node,
        backend=unit.backend,
        path=unit.path,
        generation=unit.generation,
        reserve_bytes=unit.reserve_bytes,
        mooncake=_target(unit),
        adopt=unit.on_restart is OnRestart.ADOPT,
        release=unit.release,
        unmount_at_deadline=strict or policy.fence.require.rank >= FenceLevel.PROCESS.rank,
    )


def _wants_store(snapshot: Snapshot, unit: UnitSpec) -> bool:
    pool = snapshot.pools.get(ObjectKey.of(unit.pool))
    return pool is not None and pool.spec.store.mooncake is not None


def _target(unit: UnitSpec) -> MooncakeTarget | None:
    """Return where the unit's segment is mounted; it stays so when the pool's object is gone."""
    if unit.store is None:
        return None
    return MooncakeTarget(
        master=unit.store.master,
        admin=unit.store.admin,
        metadata_server=unit.store.metadata_server,
        protocol=unit.store.protocol,
        devices=unit.store.devices,
    )


def _seats(snapshot: Snapshot, moves: Moves, node: str) -> tuple[PlannedSeat, ...]:
    """Return the seats on which an engine may serve: the claim names the slot, and the slot the seat.

    A claim for an epoch that the slot has not reached is no seat yet; a seat whose successor was claimed, or
    whose slot is being deleted, is none any more: its engine is told to stop.
    """
    claims = {claim.device: claim for claim in snapshot.kvnodes[node].spec.claims}
    found = []
    for key, slot in sorted(snapshot.slots.items()):
        if slot.metadata.deletion_timestamp is not None or moves.is_withdrawn(slot):
            continue
        for seat in slot.spec.seats:
            held = [claims.get(device) for device in seat.devices]
            agrees = all(
                claim is not None and claim.slot == str(key) and claim.epoch <= slot.spec.epoch
                for claim in held
            )
            if seat.node == node and agrees:
                found.append(PlannedSeat(key, slot.spec.epoch, seat.devices, ""))
    return tuple(found)


def _roster(snapshot: Snapshot, node: str) -> tuple[RosterMember, ...]:
    """Return the guard group, the node itself included."""
    found = []
    for member in sorted(guard_group(snapshot, node) | {node}):
        agent = snapshot.agents.get(member)
        fact = snapshot.nodes.get(member)
        found.append(
            RosterMember(
                member,
                agent.peer_address if agent is not None else "",
                fact.address if fact is not None else "",
                board_of(snapshot, member),
            )
        )
    return tuple(found)


def _hold(snapshot: Snapshot, node: str) -> bool:
    """Whether the node starts nothing new. A move that was bound to it already is finished first."""
    if not snapshot.paused and snapshot.mode_cap is Mode.ENFORCE:
        return False
    return not any(
        is_open(remap)
        and (slot := snapshot.slots.get(slot_of(remap))) is not None
        and slot.spec.epoch == remap.spec.epoch
        and any(seat.node == node for seat in remap.spec.to)
        for remap in snapshot.remaps.values()
    )
