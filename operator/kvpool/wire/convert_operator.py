"""Writing what the operator says on a stream; the agent reads it into types of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kvpool.model.nodeplan import LeaseTerms, NodePlanData, RosterMember
from kvpool.wire.convert_plan import plan_to_wire, roster_to_wire
from kvpool.wire.v1alpha1 import agent_pb2 as pb


@dataclass(frozen=True, slots=True)
class WelcomeData:
    """The stream is accepted under this epoch and these terms; sent again when either changes.

    Without a roster to tell yet, `roster_revision` is 0 and the message has none: the agent keeps its own.
    """

    operator_epoch: int
    lease: LeaseTerms
    roster: tuple[RosterMember, ...] = ()
    roster_revision: int = 0
    name: ClassVar[str] = "welcome"


@dataclass(frozen=True, slots=True)
class GrantData:
    """Extends the lease from the sending of Renew `seq` on."""

    seq: int
    ttl_seconds: float
    operator_epoch: int
    name: ClassVar[str] = "grant"


@dataclass(frozen=True, slots=True)
class PlanData:
    """A plan with its numbers. `operator_epoch` is that of the sender, not below that of the plan."""

    operator_epoch: int
    revision: int
    roster_revision: int
    plan: NodePlanData
    name: ClassVar[str] = "node_plan"


@dataclass(frozen=True, slots=True)
class NotLeaderData:
    """This replica does not lead; `leader` is the identity of the one that does, empty when unknown."""

    leader: str
    name: ClassVar[str] = "not_leader"


OperatorMessage = WelcomeData | GrantData | PlanData | NotLeaderData


def operator_message_to_wire(message: OperatorMessage) -> pb.ConnectResponse:
    """Write a message to an agent."""
    match message:
        case WelcomeData():
            return pb.ConnectResponse(welcome=_welcome_message(message))
        case GrantData(seq, ttl_seconds, operator_epoch):
            ttl_ms = _milliseconds(ttl_seconds)
            return pb.ConnectResponse(grant=pb.Grant(seq=seq, ttl_ms=ttl_ms, operator_epoch=operator_epoch))
        case PlanData(operator_epoch, revision, roster_revision, plan):
            node_plan = plan_to_wire(plan, operator_epoch, revision, roster_revision)
            return pb.ConnectResponse(node_plan=node_plan)
        case NotLeaderData(leader):
            return pb.ConnectResponse(not_leader=pb.NotLeader(leader=leader))


def _welcome_message(welcome: WelcomeData) -> pb.Welcome:
    known = welcome.roster_revision > 0
    return pb.Welcome(
        operator_epoch=welcome.operator_epoch,
        ttl_ms=_milliseconds(welcome.lease.duration_seconds),
        max_skew_ms=_milliseconds(welcome.lease.max_skew_seconds),
        strict=welcome.lease.strict,
        roster=roster_to_wire(welcome.roster, welcome.roster_revision) if known else None,
    )


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
