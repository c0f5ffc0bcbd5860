"""Writing plans of what a node is to hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from kvpool.model.nodeplan import (
    MooncakeTarget,
    NodePlanData,
    PlannedSeat,
    PlannedUnit,
    RosterMember,
)
from kvpool.wire.v1alpha1 import agent_pb2 as pb

Release = Literal["None", "Drain", "Now"]
_RELEASE_MODES: Mapping[Release, pb.ReleaseMode.ValueType] = {
    "None": pb.RELEASE_MODE_UNSPECIFIED,
    "Drain": pb.RELEASE_MODE_DRAIN,
    "Now": pb.RELEASE_MODE_NOW,
}


def plan_to_wire(plan: NodePlanData, operator_epoch: int, revision: int, roster_revision: int) -> pb.NodePlan:
    """Write a plan under the present epoch, which may be above the one it was made under."""
    return pb.NodePlan(
        operator_epoch=operator_epoch,
        revision=revision,
        units=[_unit_message(unit) for unit in plan.units],
        seats=[_seat_message(seat) for seat in plan.seats],
        roster=roster_to_wire(plan.roster, roster_revision),
        hold=plan.hold,
        retire=plan.retire,
    )


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


def _mooncake_message(target: MooncakeTarget) -> pb.MooncakeTarget:
    return pb.MooncakeTarget(
        master=target.master,
        admin=target.admin,
        metadata_server=target.metadata_server,
        protocol=target.protocol,
        devices=target.devices,
    )


def _seat_message(seat: PlannedSeat) -> pb.Seat:
    return pb.Seat(slot=str(seat.slot), epoch=seat.epoch, devices=seat.devices, pod_uid=seat.pod_uid)
