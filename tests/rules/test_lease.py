from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.api.supernode import LeasePolicy
from kvpool.rules.lease import (
    WITNESS_VALIDITY_SECONDS,
    LeaseTerms,
    NodeLease,
    PeerState,
    PeerWord,
    Stand,
    believed_again_at,
    expiry_proves_a_stop,
    is_mass_loss,
    lease_expired,
    operator_deadline,
    stand,
)

TERMS = LeaseTerms(ttl_seconds=10.0, max_skew_seconds=1.0)
FOUR = frozenset({"node-1", "node-2", "node-3", "node-4"})
delays = st.floats(min_value=0.0, max_value=30.0)


def lost_at(seconds: float) -> PeerWord:
    return PeerWord(PeerState.LOST, seconds)


def held_at(seconds: float) -> PeerWord:
    return PeerWord(PeerState.HELD, seconds)


def four_without_lease(words: dict[str, PeerWord], policy: LeasePolicy = LeasePolicy.PEER_AWARE) -> Stand:
    return stand(NodeLease(5.0), policy, 100.0, group=FOUR, own_node="node-1", words=words)


def test_a_node_that_was_never_granted_anything_holds_no_lease() -> None:
    assert not NodeLease().held(0.0)


def test_the_lease_counts_from_sending_the_renew_not_from_the_grant() -> None:
    lease = NodeLease().renew_sent(1, 100.0).granted(1, 10.0)
    assert lease.deadline_seconds == 110.0
    assert lease.held(109.9)
    assert not lease.held(110.0)


def test_a_grant_for_an_unknown_renew_extends_nothing() -> None:
    lease = NodeLease().renew_sent(1, 100.0)
    assert lease.granted(2, 10.0) == lease


def test_a_grant_is_counted_once() -> None:
    lease = NodeLease().renew_sent(1, 100.0).granted(1, 10.0)
    assert lease.granted(1, 500.0) == lease


def test_a_grant_of_an_ended_stream_extends_nothing() -> None:
    lease = NodeLease().renew_sent(1, 100.0).stream_ended()
    assert lease.granted(1, 10.0).deadline_seconds is None


@given(st.lists(st.tuples(st.integers(1, 8), st.booleans(), delays), max_size=30))
def test_the_deadline_never_moves_back(steps: list[tuple[int, bool, float]]) -> None:
    lease, now = NodeLease(), 0.0
    for seq, is_grant, delay in steps:
        now += delay
        before = lease.deadline_seconds
        lease = lease.granted(seq, delay) if is_grant else lease.renew_sent(seq, now)
        assert before is None or (lease.deadline_seconds is not None and lease.deadline_seconds >= before)


@given(to_operator=delays, handling=delays, to_node=delays, sent_at=delays)
def test_the_node_has_stopped_before_the_operator_believes_it(
    to_operator: float, handling: float, to_node: float, sent_at: float
) -> None:
    grant_sent_at = sent_at + to_operator + handling
    lease = NodeLease().renew_sent(1, sent_at).granted(1, TERMS.ttl_seconds)
    takeover_at = operator_deadline(grant_sent_at, TERMS)
    assert not lease.held(takeover_at)
    assert lease.deadline_seconds is not None
    assert lease.deadline_seconds <= takeover_at - TERMS.max_skew_seconds


def test_a_held_lease_serves_whatever_peers_say() -> None:
    verdict = stand(NodeLease(101.0), LeasePolicy.STRICT, 100.0, group=FOUR, own_node="node-1", words={})
    assert verdict is Stand.HELD


def test_a_node_alone_without_lease_stops() -> None:
    assert four_without_lease({peer: held_at(99.9) for peer in FOUR - {"node-1"}}) is Stand.STOP


def test_peers_that_cannot_be_reached_do_not_count_as_lost() -> None:
    assert four_without_lease({}) is Stand.STOP


def test_half_of_the_group_is_not_enough_to_serve_on() -> None:
    assert four_without_lease({"node-2": lost_at(99.9)}) is Stand.STOP


def test_more_than_half_of_the_group_without_lease_serves_on() -> None:
    assert four_without_lease({"node-2": lost_at(99.9), "node-3": lost_at(99.9)}) is Stand.SERVING_ON


def test_an_old_word_does_not_count() -> None:
    old = lost_at(100.0 - WITNESS_VALIDITY_SECONDS)
    assert four_without_lease({"node-2": old, "node-3": old}) is Stand.STOP


def test_words_of_strangers_do_not_count() -> None:
    strangers = {f"stranger-{number}": lost_at(99.9) for number in range(9)}
    assert four_without_lease(strangers) is Stand.STOP


def test_strict_stops_even_when_every_peer_lost_its_lease() -> None:
    words = {peer: lost_at(99.9) for peer in FOUR}
    assert four_without_lease(words, LeasePolicy.STRICT) is Stand.STOP


@pytest.mark.parametrize("members", [{"node-1"}, {"node-1", "node-2"}])
def test_a_group_of_one_or_two_serves_on_because_its_expiry_proves_nothing(members: set[str]) -> None:
    group = frozenset(members)
    verdict = stand(NodeLease(5.0), LeasePolicy.PEER_AWARE, 100.0, group=group, own_node="node-1", words={})
    assert verdict is Stand.SERVING_ON
    assert not expiry_proves_a_stop(LeasePolicy.PEER_AWARE, group)


@given(
    st.sets(st.integers(0, 30), min_size=3).map(lambda numbers: frozenset(f"node-{n}" for n in numbers)),
    st.data(),
)
def test_node_and_operator_agree_when_they_know_the_same(group: frozenset[str], data: st.DataObject) -> None:
    lost = data.draw(st.sets(st.sampled_from(sorted(group)), min_size=1))
    own = min(lost)
    words = {node: lost_at(99.0) if node in lost else held_at(99.0) for node in group}
    verdict = stand(NodeLease(), LeasePolicy.PEER_AWARE, 100.0, group=group, own_node=own, words=words)
    operator_holds = is_mass_loss(lost, group)
    assert (verdict is Stand.SERVING_ON) == operator_holds


def test_a_new_leader_waits_one_whole_lease_before_it_believes_an_expiry() -> None:
    def expired(now: float) -> bool:
        return lease_expired(now, TERMS, grant_sent_at_seconds=None, leading_since_seconds=100.0)

    assert not expired(110.9)
    assert expired(111.0)


def test_the_newest_grant_counts() -> None:
    assert not lease_expired(115.0, TERMS, grant_sent_at_seconds=105.0, leading_since_seconds=100.0)
    assert lease_expired(116.0, TERMS, grant_sent_at_seconds=105.0, leading_since_seconds=100.0)


def test_after_a_mass_loss_expiries_count_again_when_no_old_word_can_keep_a_node_serving() -> None:
    assert believed_again_at(100.0, TERMS) == 100.0 + 10.0 + WITNESS_VALIDITY_SECONDS
