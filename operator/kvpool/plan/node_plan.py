"""All that one node is to hold: units, seats whose claim and slot agree, and the guard group."""

from collections import defaultdict
from collections.abc import Mapping

from kvpool.api.common import Mode
from kvpool.api.duration import parse_duration
from kvpool.api.kvnode import UnitSpec
from kvpool.api.kvpool import OnRestart
from kvpool.api.supernode import Failover, FenceLevel, LeasePolicy
from kvpool.model.ids import DeviceRef, ObjectKey
from kvpool.model.nodeplan import (
    LeaseTerms,
    MooncakeTarget,
    NodePlanData,
    PlannedSeat,
    PlannedUnit,
    RosterMember,
)
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import board_of, domain_unknown, policy_of, supernode_of
from kvpool.plan.moves import Moves, is_open, slot_of
from kvpool.plan.retirement import retiring_nodes


def node_plans(snapshot: Snapshot) -> Mapping[str, NodePlanData]:
    """Return the whole plan of every node that has a KVNode, by node name.

    A unit whose store has no known address is left out: an agent keeps what its plan does not name.
    """
    seats, moving, domains = _seats(snapshot), _moving_to(snapshot), _Domains(snapshot)
    on_hold = snapshot.paused or snapshot.mode_cap is not Mode.ENFORCE
    retiring = retiring_nodes(snapshot, seats)
    plans = {node: _farewell(snapshot, node) for node in sorted(retiring - snapshot.kvnodes.keys())}
    for node, kvnode in sorted(snapshot.kvnodes.items()):
        policy = policy_of(domains.supernodes[node])
        wanted = [unit for unit in kvnode.spec.units if _can_be_carried_out(snapshot, unit)]
        plans[node] = NodePlanData(
            node=node,
            operator_epoch=snapshot.leadership.operator_epoch,
            units=tuple(_unit(policy, unit) for unit in sorted(wanted, key=lambda unit: unit.name)),
            seats=tuple(seats[node]),
            roster=domains.roster(node),
            lease=_lease(policy) if domain_unknown(snapshot, node) is None else _last(snapshot, node),
            # A move that was bound to the node already is finished first.
            hold=on_hold and node not in moving,
            retire=node in retiring,
        )
    return plans


def _farewell(snapshot: Snapshot, node: str) -> NodePlanData:
    """The plan of an agent that has no KVNode (any more) and is to remove what it keeps on its host."""
    return NodePlanData(
        node=node,
        operator_epoch=snapshot.leadership.operator_epoch,
        units=(),
        seats=(),
        roster=(),
        lease=_lease(policy_of(None)),
        hold=True,
        retire=True,
    )


class _Domains:
    """Supernodes and rosters, looked up once for all nodes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.supernodes = {node: supernode_of(snapshot, node) for node in snapshot.kvnodes}
        everybody = {node: _member(snapshot, node) for node in sorted(snapshot.kvnodes)}
        members: defaultdict[str, list[RosterMember]] = defaultdict(list)
        for node, member in everybody.items():
            members[self._name(node)].append(member)
        self._rosters = {name: tuple(found) for name, found in members.items()}
        self._everybody = tuple(everybody.values())

    def roster(self, node: str) -> tuple[RosterMember, ...]:
        """Return the guard group, the node itself included: the Supernode's nodes, else all."""
        name = self._name(node)
        return self._rosters[name] if name else self._everybody

    def _name(self, node: str) -> str:
        supernode = self.supernodes[node]
        return supernode.metadata.name if supernode is not None else ""


def _member(snapshot: Snapshot, node: str) -> RosterMember:
    agent, fact = snapshot.agents.get(node), snapshot.nodes.get(node)
    return RosterMember(
        node,
        agent.peer_address if agent is not None else "",
        fact.address if fact is not None else "",
        board_of(snapshot, node),
    )


def _lease(policy: Failover) -> LeaseTerms:
    lease = policy.lease
    strict = lease.policy is LeasePolicy.STRICT
    return LeaseTerms(parse_duration(lease.duration), parse_duration(lease.max_skew), strict)


def _last(snapshot: Snapshot, node: str) -> LeaseTerms:
    """The terms that were granted last, while nobody knows which are wanted; nothing is fenced on them."""
    agent = snapshot.agents.get(node)
    if agent is None:
        return _lease(policy_of(None))
    return LeaseTerms(agent.lease.duration_seconds, agent.lease.max_skew_seconds, strict=False)


def _unit(policy: Failover, unit: UnitSpec) -> PlannedUnit:
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


def _can_be_carried_out(snapshot: Snapshot, unit: UnitSpec) -> bool:
    """Whether it is known where the unit's segment is mounted; to give it back that need not be known."""
    if unit.store is not None or unit.release != "None":
        return True
    key = ObjectKey.of(unit.pool)
    pool = snapshot.pools.get(key)
    if pool is None:
        return not snapshot.may_exist("KVPool", key)
    return pool.spec.store.mooncake is None


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


def _seats(snapshot: Snapshot) -> Mapping[str, list[PlannedSeat]]:
    """Return the seats on which an engine may serve: the claim names the slot, and the slot the seat.

    A claim for an epoch that the slot has not reached is no seat yet; a seat whose successor was claimed, or
    whose slot is being deleted, is none any more: its engine is told to stop. Nor is one that is being left
    and whose node booted anew meanwhile: the boot is the proof that its epoch is over, and stays it.
    """
    moves = Moves(snapshot)
    claims = {
        DeviceRef(node, claim.device): claim
        for node, kvnode in snapshot.kvnodes.items()
        for claim in kvnode.spec.claims
    }
    found: defaultdict[str, list[PlannedSeat]] = defaultdict(list)
    for key, slot in sorted(snapshot.slots.items()):
        if slot.metadata.deletion_timestamp is not None or moves.is_withdrawn(slot):
            continue
        for seat in slot.spec.seats:
            if moves.is_of_earlier_boot(slot, seat.node):
                continue
            held = [claims.get(DeviceRef(seat.node, device)) for device in seat.devices]
            if all(
                claim is not None and claim.slot == str(key) and claim.epoch <= slot.spec.epoch
                for claim in held
            ):
                found[seat.node].append(PlannedSeat(key, slot.spec.epoch, seat.devices, ""))
    return found


def _moving_to(snapshot: Snapshot) -> frozenset[str]:
    """Return the nodes that a move is bound to and not over."""
    return frozenset(
        seat.node
        for remap in snapshot.remaps.values()
        if is_open(remap)
        and (slot := snapshot.slots.get(slot_of(remap))) is not None
        and slot.spec.epoch == remap.spec.epoch
        for seat in remap.spec.to
    )
