"""Plans of what a node is to hold, between wire and model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from kvpool.api.tierbudget import Backend
from kvpool.model.nodeplan import (
    LeaseTerms,
    MooncakeTarget,
    NodePlanData,
    PlannedSeat,
    PlannedUnit,
    RosterMember,
)
from kvpool.wire import convert_bounds as read
from kvpool.wire.convert_report import TIERS, object_key
from kvpool.wire.v1alpha1 import agent_pb2 as pb

Release = Literal["None", "Drain", "Now"]
_RELEASES: Mapping[int, Release] = {
    pb.RELEASE_MODE_UNSPECIFIED: "None",
    pb.RELEASE_MODE_DRAIN: "Drain",
    pb.RELEASE_MODE_NOW: "Now",
}
_RELEASE_MODES: Mapping[Release, pb.ReleaseMode.ValueType] = {
    "None": pb.RELEASE_MODE_UNSPECIFIED,
    "Drain": pb.RELEASE_MODE_DRAIN,
    "Now": pb.RELEASE_MODE_NOW,
}
_MAX_PATH = 1024


def plan_from_wire(message: pb.NodePlan, node: str, lease: LeaseTerms) -> NodePlanData:
    """Read a plan. The reader knows its `node`, and its `lease` from Welcome. Raises MalformedError."""
    units = tuple(_unit(f"units[{i}]", m) for i, m in enumerate(read.items("units", message.units)))
    read.distinct("units", units, lambda unit: unit.name)
    return NodePlanData(
        node=node,
        operator_epoch=read.count("operator_epoch", message.operator_epoch),
        units=units,
        seats=tuple(_seat(f"seats[{i}]", m) for i, m in enumerate(read.items("seats", message.seats))),
        roster=roster_from_wire("roster", message.roster),
        lease=lease,
        hold=message.hold,
    )


def plan_to_wire(plan: NodePlanData, operator_epoch: int, revision: int, roster_revision: int) -> pb.NodePlan:
    """Write a plan under the present epoch, which may be above the one it was made under."""
    return pb.NodePlan(
        operator_epoch=operator_epoch,
        revision=revision,
        units=[_unit_message(unit) for unit in plan.units],
        seats=[_seat_message(seat) for seat in plan.seats],
        roster=roster_to_wire(plan.roster, roster_revision),
        hold=plan.hold,
    )


def roster_from_wire(path: str, message: pb.Roster) -> tuple[RosterMember, ...]:
    """Read the members of a guard group. Raises MalformedError."""
    members = tuple(
        RosterMember(
            node=read.identifier(f"{path}.members[{i}].node_name", member.node_name, required=True),
            peer_address=read.identifier(f"{path}.members[{i}].peer_address", member.peer_address),
            host_address=read.identifier(f"{path}.members[{i}].host_address", member.host_address),
            board=read.identifier(f"{path}.members[{i}].board", member.board),
        )
        for i, member in enumerate(read.items(f"{path}.members", message.members, read.MAX_MEMBERS))
    )
    read.distinct(f"{path}.members", members, lambda member: member.node)
    return members


def roster_to_wire(members: Iterable[RosterMember], revision: int) -> pb.Roster:
    """Write the members of a guard group."""
    return pb.Roster(
        revision=revision,
        members=[
            pb.RosterMember(
                node_name=member.node,
                peer_address=member.peer_address,
                host_address=member.host_address,
                board=member.board,
            )
            for member in members
        ],
    )


def _unit(path: str, message: pb.Unit) -> PlannedUnit:
    if message.release not in _RELEASES:
        raise read.MalformedError(f"{path}.release", f"{message.release} is not a release mode")
    return PlannedUnit(
        name=read.identifier(f"{path}.name", message.name, required=True),
        pool=str(object_key(f"{path}.pool", message.pool)),
        tier=read.one_of(f"{path}.tier", message.tier, TIERS),
        size_bytes=read.count(f"{path}.size_bytes", message.size_bytes),
        numa_node=read.numa_node(f"{path}.numa_node", message.numa_node),
        backend=read.word(f"{path}.backend", message.backend, Backend).value,
        path=read.identifier(f"{path}.path", message.path, _MAX_PATH),
        generation=read.count(f"{path}.generation", message.generation),
        reserve_bytes=read.count(f"{path}.reserve_bytes", message.reserve_bytes),
        mooncake=_mooncake(f"{path}.mooncake", message.mooncake) if message.HasField("mooncake") else None,
        adopt=message.adopt,
        release=_RELEASES[message.release],
        unmount_at_deadline=message.unmount_at_deadline,
    )


def _unit_message(unit: PlannedUnit) -> pb.Unit:
    target = unit.mooncake
    return pb.Unit(
        name=unit.name,
        pool=unit.pool,
        tier=unit.tier,
        size_bytes=unit.size_bytes,
        numa_node=unit.numa_node,
        backend=unit.backend,
        path=unit.path,
        generation=unit.generation,
        reserve_bytes=unit.reserve_bytes,
        mooncake=None if target is None else _mooncake_message(target),
        adopt=unit.adopt,
        release=_RELEASE_MODES[unit.release],
        unmount_at_deadline=unit.unmount_at_deadline,
    )


def _mooncake(path: str, message: pb.MooncakeTarget) -> MooncakeTarget:
    return MooncakeTarget(
        master=read.identifier(f"{path}.master", message.master, required=True),
        admin=read.identifier(f"{path}.admin", message.admin),
        metadata_server=read.identifier(f"{path}.metadata_server", message.metadata_server),
        protocol=read.identifier(f"{path}.protocol", message.protocol, 63),
        devices=read.identifier(f"{path}.devices", message.devices, _MAX_PATH),
    )


def _mooncake_message(target: MooncakeTarget) -> pb.MooncakeTarget:
    return pb.MooncakeTarget(
        master=target.master,
        admin=target.admin,
        metadata_server=target.metadata_server,
        protocol=target.protocol,
        devices=target.devices,
    )


def _seat(path: str, message: pb.Seat) -> PlannedSeat:
    return PlannedSeat(
        slot=object_key(f"{path}.slot", message.slot),
        epoch=read.count(f"{path}.epoch", message.epoch),
        devices=tuple(
            read.identifier(f"{path}.devices", device, 128, required=True)
            for device in read.items(f"{path}.devices", message.devices)
        ),
        pod_uid=read.identifier(f"{path}.pod_uid", message.pod_uid, read.MAX_UID),
    )


def _seat_message(seat: PlannedSeat) -> pb.Seat:
    return pb.Seat(slot=str(seat.slot), epoch=seat.epoch, devices=seat.devices, pod_uid=seat.pod_uid)
