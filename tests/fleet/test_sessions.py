"""Sessions with time handed in: leases, resends, and whose stream counts. No network."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api.supernode import EvidenceClass
from kvpool.fleet import leases
from kvpool.fleet.outbox import Outbox
from kvpool.fleet.refusals import Reason, RefusedError
from kvpool.fleet.sessions import Session, Sessions
from kvpool.model.nodeplan import LeaseTerms, NodePlanData, PlannedUnit
from kvpool.model.observations import EvidenceView, PeerWord
from kvpool.rules.epochs import MOST_EPOCHS_AHEAD
from kvpool.wire.convert_agent import EvidenceData, HelloData, LeavingData, RenewData
from kvpool.wire.convert_bounds import MalformedError
from kvpool.wire.convert_operator import GrantData, NotLeaderData, OperatorMessage, PlanData, WelcomeData
from kvpool.wire.convert_report import MAX_EVIDENCE, ReportData
from tests.fleet.conftest import Told
from tests.fleet.doubles import Counts

TERMS = LeaseTerms(10.0, 1.0, strict=False)
PLAN = NodePlanData("node-1", 7, (), (), (), TERMS, hold=False)
HELLO = HelloData("node-1", "boot-a", 1, "0.1.0", 0, ReportData(0, 0.0), "", "")


@pytest.fixture
def sessions(told: Told, counts: Counts) -> Sessions:
    leading = Sessions(TERMS, told.callbacks, counts)
    leading.lead(7)
    return leading


async def send_all(sessions: Sessions, session: Session, now: float) -> list[OperatorMessage]:
    """Take and send whatever waits."""
    sent = []
    while any(session.outbox.waits(kind) for kind in (WelcomeData, GrantData, PlanData)):
        sent.append(await session.outbox.take())
        sessions.sending(session, sent[-1], now)
    return sent


async def test_a_plan_that_is_not_applied_is_sent_again_after_five_seconds(sessions: Sessions) -> None:
    session = sessions.open("node-1", HELLO, 0.0)
    revision = sessions.set_plan("node-1", PLAN)
    await send_all(sessions, session, 1.0)
    sessions.receive(session, ReportData(0, 5.9), 5.9)
    assert not session.outbox.waits(PlanData)
    sessions.receive(session, RenewData(1, 0), 6.0)
    again = await send_all(sessions, session, 6.0)
    assert [message.revision for message in again if isinstance(message, PlanData)] == [revision]
    sessions.receive(session, ReportData(revision, 20.0), 20.0)
    assert not session.outbox.waits(PlanData)


async def test_shorter_terms_do_not_shorten_what_was_promised(sessions: Sessions) -> None:
    session = sessions.open("node-1", HELLO, 0.0)
    sessions.receive(session, RenewData(1, 0), 0.0)
    await send_all(sessions, session, 0.0)
    sessions.set_plan("node-1", replace(PLAN, lease=LeaseTerms(2.0, 1.0, strict=False)))
    sessions.receive(session, RenewData(2, 0), 1.0)
    await send_all(sessions, session, 1.0)
    assert sessions.views()["node-1"].lease.expires_at == 11.0
    sessions.receive(session, RenewData(3, 0), 9.0)
    await send_all(sessions, session, 9.0)
    assert sessions.views()["node-1"].lease.expires_at == 12.0


def test_longer_terms_count_from_the_first_grant_under_them() -> None:
    short = leases.granted(leases.never_granted(TERMS), TERMS, 5.0)
    assert leases.granted(short, replace(TERMS, duration_seconds=20.0), 6.0).expires_at == 27.0


async def test_a_grant_that_was_never_sent_promised_nothing(sessions: Sessions) -> None:
    session = sessions.open("node-1", HELLO, 0.0)
    sessions.receive(session, RenewData(1, 0), 1.0)
    sessions.closed(session)
    assert sessions.views()["node-1"].lease.granted_at is None


async def test_a_predecessor_is_refused_as_long_as_its_successor_may_hold_the_lease(
    sessions: Sessions,
) -> None:
    successor = sessions.open("node-1", replace(HELLO, incarnation=5), 0.0)
    sessions.receive(successor, RenewData(1, 0), 0.0)
    await send_all(sessions, successor, 0.0)
    sessions.closed(successor)
    with pytest.raises(RefusedError) as refusal:
        sessions.open("node-1", replace(HELLO, incarnation=4), 10.9)
    assert refusal.value.reason is Reason.OLD_INCARNATION
    sessions.open("node-1", replace(HELLO, incarnation=4), 11.0)
    assert sessions.views()["node-1"].incarnation == 4


async def test_what_a_replaced_stream_still_says_changes_nothing(sessions: Sessions) -> None:
    old = sessions.open("node-1", HELLO, 0.0)
    new = sessions.open("node-1", HELLO, 1.0)
    sessions.receive(old, RenewData(1, 0), 2.0)
    sessions.receive(old, ReportData(99, 2.0), 2.0)
    sessions.sending(old, GrantData(1, 10.0, 7), 2.0)
    sessions.closed(old)
    view = sessions.views()["node-1"]
    assert (view.connected, view.applied_revision, view.lease.granted_at) == (True, 0, None)
    assert not new.outbox.waits(GrantData)


async def test_of_a_slow_stream_only_the_newest_messages_wait(sessions: Sessions, counts: Counts) -> None:
    session = sessions.open("node-1", HELLO, 0.0)
    for number in range(50):
        sessions.receive(session, RenewData(number, 0), 0.0)
        sessions.set_plan("node-1", replace(PLAN, hold=bool(number % 2)))
    sent = await send_all(sessions, session, 0.0)
    assert [message.name for message in sent] == ["welcome", "grant", "node_plan"]
    assert [message.seq for message in sent if isinstance(message, GrantData)] == [49]
    assert [message.revision for message in sent if isinstance(message, PlanData)] == [50]
    assert counts.by_name["superseded", "grant"] == 49


async def test_a_leave_ends_with_the_next_hello_and_cannot_last_for_ever(sessions: Sessions) -> None:
    session = sessions.open("node-1", HELLO, 0.0)
    sessions.receive(session, LeavingData(1e9), 5.0)
    assert sessions.views()["node-1"].leaving_until == 605.0
    sessions.open("node-1", HELLO, 6.0)
    assert sessions.views()["node-1"].leaving_until is None


async def test_words_about_peers_are_kept_by_peer_newest_first(sessions: Sessions) -> None:
    session = sessions.open("node-1", HELLO, 0.0)
    sessions.receive(
        session, RenewData(1, 3, (PeerWord("b", True, 1.0, None), PeerWord("c", True, 1.0, None))), 1.0
    )
    sessions.receive(session, RenewData(2, 3, (PeerWord("b", False, 2.0, None),)), 2.0)
    view = sessions.views()["node-1"]
    assert [(word.peer, word.reached, word.at) for word in view.peers] == [
        ("b", False, 2.0),
        ("c", True, 1.0),
    ]
    assert view.roster_revision == 3


def seen(code: str, uuid: str = "GPU-0") -> EvidenceData:
    return EvidenceData("d0", uuid, EvidenceView("xid", code, EvidenceClass.WARN, 1, 0.0, 0.0))


async def test_evidence_about_an_exchanged_device_does_not_mix_with_its_predecessors(
    sessions: Sessions,
) -> None:
    session = sessions.open("node-1", HELLO, 0.0)
    sessions.receive(session, seen("31"), 1.0)
    sessions.receive(session, seen("79", uuid="GPU-1"), 2.0)
    [device] = sessions.views()["node-1"].devices
    assert (device.uuid, [one.code for one in device.evidence]) == ("GPU-1", ["79"])


async def test_evidence_without_end_is_malformed(sessions: Sessions) -> None:
    session = sessions.open("node-1", HELLO, 0.0)
    for number in range(MAX_EVIDENCE):
        sessions.receive(session, seen(str(number)), 1.0)
    with pytest.raises(MalformedError, match=f"more than {MAX_EVIDENCE}"):
        sessions.receive(session, seen("one too many"), 1.0)


def test_a_plan_can_only_be_made_by_a_leader(sessions: Sessions) -> None:
    sessions.stand_by("operator-b")
    with pytest.raises(ValueError, match="while leading"):
        sessions.set_plan("node-1", PLAN)


async def test_the_first_ending_of_a_stream_holds_and_nothing_is_sent_before_it(counts: Counts) -> None:
    outbox = Outbox(counts.superseded)
    outbox.put(GrantData(1, 10.0, 7))
    outbox.end(NotLeaderData("operator-b"))
    outbox.end(RefusedError(Reason.REPLACED, "later"))
    assert await outbox.take() == NotLeaderData("operator-b")


async def test_a_view_names_what_its_newest_plan_gives_back(sessions: Sessions) -> None:
    kept = PlannedUnit("a", "ns/p", "DRAM", 1, 0, "tmpfs", "", 1, 0, None, True, "None", False)
    released = replace(kept, name="b", generation=3, release="Drain")
    sessions.open("node-1", HELLO, 0.0)
    revision = sessions.set_plan("node-1", replace(PLAN, units=(kept, released)))
    view = sessions.views()["node-1"]
    assert view.plan_revision == revision
    assert view.plan_releases == {("b", 3)}
    sessions.open("node-1", HELLO, 1.0)
    assert sessions.views()["node-1"].plan_releases == {("b", 3)}


async def test_an_epoch_that_no_leader_can_have_reached_is_refused_and_not_followed(
    sessions: Sessions, told: Told
) -> None:
    with pytest.raises(MalformedError, match=r"hello\.highest_operator_epoch: .* above 7, the leader's own"):
        sessions.open("node-1", replace(HELLO, highest_operator_epoch=7 + MOST_EPOCHS_AHEAD + 1), 0.0)
    assert (sessions.views(), told.higher_epochs) == ({}, [])
    sessions.open("node-1", replace(HELLO, highest_operator_epoch=7 + MOST_EPOCHS_AHEAD), 0.0)
    assert told.higher_epochs == [7 + MOST_EPOCHS_AHEAD]


def test_a_view_says_whether_its_stream_is_the_first_of_another_boot(sessions: Sessions) -> None:
    told = []
    for boot in ("boot-a", "boot-a", "boot-b", "boot-b"):
        sessions.open("node-1", replace(HELLO, boot_id=boot), 0.0)
        told.append(sessions.views()["node-1"].booted_anew)
    assert told == [False, False, True, False]
