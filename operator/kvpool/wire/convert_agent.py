"""Reading what an agent says on its stream; the agent writes it from types of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kvpool.api.epoch import MOST_OPERATOR_EPOCH
from kvpool.model.observations import EvidenceView, PeerWord
from kvpool.wire import convert_bounds as read
from kvpool.wire.convert_report import ReportData, evidence_from_wire, report_from_wire
from kvpool.wire.v1alpha1 import agent_pb2 as pb

_LEASE_LOST: Mapping[int, bool | None] = {
    pb.PEER_LEASE_UNSPECIFIED: None,
    pb.PEER_LEASE_HELD: False,
    pb.PEER_LEASE_LOST: True,
}


@dataclass(frozen=True, slots=True)
class HelloData:
    """Who the agent is and all it holds."""

    node_name: str
    boot_id: str
    incarnation: int
    agent_version: str
    highest_operator_epoch: int
    report: ReportData
    peer_address: str
    pod_uid: str
    name: ClassVar[str] = "hello"


@dataclass(frozen=True, slots=True)
class RenewData:
    """Asks for a Grant, with the agent's words on its peers."""

    seq: int
    roster_revision: int
    words: tuple[PeerWord, ...] = ()
    name: ClassVar[str] = "renew"


@dataclass(frozen=True, slots=True)
class EvidenceData:
    """A finding about a device, sent at once."""

    device: str
    uuid: str
    evidence: EvidenceView
    name: ClassVar[str] = "evidence"


@dataclass(frozen=True, slots=True)
class LeavingData:
    """The agent goes down on purpose."""

    for_seconds: float
    name: ClassVar[str] = "leaving"


AgentMessage = HelloData | RenewData | ReportData | EvidenceData | LeavingData


def agent_message_from_wire(message: pb.ConnectRequest, now: float) -> AgentMessage:
    """Read a message that arrived at `now` (monotonic seconds). Raises MalformedError."""
    match message.WhichOneof("message"):
        case "hello":
            return _hello(message.hello, now)
        case "renew":
            return _renew(message.renew, now)
        case "report":
            return report_from_wire(message.report, now)
        case "evidence":
            return _evidence(message.evidence, now)
        case "leaving":
            return LeavingData(message.leaving.for_ms / 1000)
        case _:
            raise read.MalformedError("message", "is empty, or of a kind this operator does not know")


def _hello(message: pb.Hello, now: float) -> HelloData:
    return HelloData(
        node_name=read.identifier("hello.node_name", message.node_name, required=True),
        boot_id=read.identifier("hello.boot_id", message.boot_id, read.MAX_UID, required=True),
        incarnation=read.count("hello.incarnation", message.incarnation),
        agent_version=read.identifier("hello.agent_version", message.agent_version, 64),
        highest_operator_epoch=read.count(
            "hello.highest_operator_epoch", message.highest_operator_epoch, MOST_OPERATOR_EPOCH
        ),
        report=report_from_wire(message.report, now),
        peer_address=read.identifier("hello.peer_address", message.peer_address),
        pod_uid=read.identifier("hello.pod_uid", message.pod_uid, read.MAX_UID),
    )


def _renew(message: pb.Renew, now: float) -> RenewData:
    reachability = read.items("renew.reachability", message.reachability, read.MAX_MEMBERS)
    words = tuple(_word(f"renew.reachability[{i}]", m, now) for i, m in enumerate(reachability))
    read.distinct("renew.reachability", words, lambda peer: peer.peer)
    return RenewData(
        seq=read.count("renew.seq", message.seq),
        roster_revision=read.count("renew.roster_revision", message.roster_revision),
        words=words,
    )


def _word(path: str, message: pb.PeerReachability, now: float) -> PeerWord:
    if message.lease not in _LEASE_LOST:
        raise read.MalformedError(f"{path}.lease", f"{message.lease} is not a peer's lease")
    return PeerWord(
        peer=read.identifier(f"{path}.node_name", message.node_name, required=True),
        reached=message.reached,
        at=read.moment(now, message.age_ms),
        lease_lost=_LEASE_LOST[message.lease],
    )


def _evidence(message: pb.Evidence, now: float) -> EvidenceData:
    return EvidenceData(
        device=read.identifier("evidence.device", message.device, 128, required=True),
        uuid=read.identifier("evidence.uuid", message.uuid, 128),
        evidence=evidence_from_wire("evidence", message, now),
    )
