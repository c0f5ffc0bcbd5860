"""What is known of an agent, message by message. Pure: a view goes in, a view comes out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kvpool.model.observations import AgentView, DeviceView, EvidenceView, LeaseView, PeerWord
from kvpool.wire.convert_agent import EvidenceData, HelloData, LeavingData, RenewData
from kvpool.wire.convert_bounds import MAX_ITEMS, MalformedError
from kvpool.wire.convert_report import MAX_EVIDENCE, ReportData

LONGEST_LEAVE_SECONDS = 600.0
"""An agent that announces a longer absence is missed after this all the same."""


def greeted(hello: HelloData, before: AgentView | None, lease: LeaseView, now: float) -> AgentView:
    """The view after a Hello. Words about peers outlive streams, each with its time.

    `roster_revision` is what this stream acknowledged; it starts anew, as an agent may forget rosters.
    """
    fresh = AgentView(
        node=hello.node_name,
        boot_id=hello.boot_id,
        incarnation=hello.incarnation,
        agent_version=hello.agent_version,
        pod_uid=hello.pod_uid,
        connected=True,
        hello_at=now,
        reported_at=now,
        leaving_until=None,
        lease=lease,
        applied_revision=0,
        highest_operator_epoch=hello.highest_operator_epoch,
        roster_revision=0,
        peers=before.peers if before is not None else (),
        peer_address=hello.peer_address,
        booted_anew=before is not None and before.boot_id != hello.boot_id,
    )
    return reported(fresh, hello.report)


def reported(view: AgentView, report: ReportData) -> AgentView:
    """The view after a Report, which is complete."""
    return replace(
        view,
        reported_at=report.taken_at,
        applied_revision=report.applied_revision,
        units=report.units,
        seats=report.seats,
        devices=report.devices,
        holders_at=report.holders_at,
        sources=report.sources,
        engines=report.engines,
        loop_age_seconds=dict(report.loop_age_seconds),
        retired=report.retired,
    )


def renewed(view: AgentView, renew: RenewData) -> AgentView:
    """The view after a Renew: what the agent says about each peer replaces what it said before."""
    words = {word.peer: word for word in view.peers} | {word.peer: word for word in renew.words}
    newest = sorted(words.values(), key=lambda word: word.at)[-_MOST_WORDS:]
    peers = tuple(sorted(newest, key=lambda word: word.peer))
    return replace(view, roster_revision=renew.roster_revision, peers=peers)


_MOST_WORDS = 1024


def says_the_same(before: Iterable[PeerWord], after: Iterable[PeerWord]) -> bool:
    """Whether two sets of words differ in nothing but their times."""

    def contents(words: Iterable[PeerWord]) -> list[tuple[str, bool, bool | None]]:
        return [(word.peer, word.reached, word.lease_lost) for word in words]

    return contents(before) == contents(after)


def accused(view: AgentView, found: EvidenceData) -> AgentView:
    """The view after one piece of Evidence, ahead of the Report that will contain it.

    Raises MalformedError when the node would have more devices, or the device more evidence, than a Report
    may name.
    """
    devices = {device.id: device for device in view.devices}
    known = devices.get(found.device)
    if known is None:
        if len(devices) >= MAX_ITEMS:
            raise MalformedError("evidence.device", f"{found.device!r} would be device {MAX_ITEMS + 1}")
        known = DeviceView(found.device, found.uuid, holder="", evidence=(), observed=True)
    elif known.uuid != found.uuid and known.uuid and found.uuid:
        # The device was exchanged: what was said of its predecessor is not about it.
        known = replace(known, uuid=found.uuid, evidence=(), observed=True)
    devices[found.device] = replace(known, evidence=_with(known.evidence, found.evidence))
    return replace(view, devices=tuple(devices.values()))


def _with(evidence: tuple[EvidenceView, ...], found: EvidenceView) -> tuple[EvidenceView, ...]:
    others = tuple(one for one in evidence if (one.source, one.code) != (found.source, found.code))
    if len(others) >= MAX_EVIDENCE:
        raise MalformedError("evidence", f"the device would have more than {MAX_EVIDENCE} kinds of evidence")
    return (*others, found)


def leaving(view: AgentView, message: LeavingData, now: float) -> AgentView:
    """The view of an agent that said it goes down on purpose."""
    return replace(view, leaving_until=now + min(message.for_seconds, LONGEST_LEAVE_SECONDS))
