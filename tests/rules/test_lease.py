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
    is_mass_loss,
    lease_expired,
    operator_deadline,
    own_word,
    sees_outage,
    stand,
)

TERMS = LeaseTerms(ttl_seconds=10.0, max_skew_seconds=1.0)
FOUR = frozenset({"node-1", "node-2", "node-3", "node-4"})
delays = st.floats(min_value=0.0, max_value=30.0)


def lost_at(seconds: float) -> PeerWord:
    return PeerWord(PeerState.LOST, seconds)


def held_at(seconds: float) -> PeerWord:
    return PeerWord(PeerState.HELD, seconds)


def outage(words: dict[str, PeerWord]) -> bool:
    return sees_outage(100.0, group=FOUR, own_node="node-1", words=words)


def stand_after(
    outage_seen_at: float | None, policy: LeasePolicy = LeasePolicy.PEER_AWARE, size: int = 4
) -> Stand:
    terms = LeaseTerms(10.0, 1.0, policy)
    return stand(NodeLease(5.0), terms, 100.0, group_size=size, outage_seen_at_seconds=outage_seen_at)


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
    strict = LeaseTerms(10.0, 1.0, LeasePolicy.STRICT)
    verdict = stand(NodeLease(101.0), strict, 100.0, group_size=4, outage_seen_at_seconds=None)
    assert verdict is Stand.HELD


def test_a_node_says_lost_until_it_is_granted_something_on_its_stream() -> None:
    lease = NodeLease(110.0)
    assert own_word(lease, 100.0, renewing=True) is PeerState.HELD
    assert own_word(lease, 100.0, renewing=False) is PeerState.LOST
    assert own_word(lease, 110.0, renewing=True) is PeerState.LOST


def test_peers_that_hold_their_leases_are_no_outage() -> None:
    assert not outage({peer: held_at(99.9) for peer in FOUR - {"node-1"}})


def test_peers_that_cannot_be_reached_do_not_count_as_lost() -> None:
    assert not outage({})


def test_half_of_the_group_is_not_enough_for_an_outage() -> None:
    assert not outage({"node-2": lost_at(99.9)})


def test_more_than_half_of_the_group_is_an_outage() -> None:
    assert outage({"node-2": lost_at(99.9), "node-3": lost_at(99.9)})


def test_an_old_word_does_not_count() -> None:
    old = lost_at(100.0 - WITNESS_VALIDITY_SECONDS)
    assert not outage({"node-2": old, "node-3": old})


def test_a_word_from_the_future_does_not_count() -> None:
    assert not outage({"node-2": lost_at(100.1), "node-3": lost_at(100.1)})


def test_words_of_strangers_do_not_count() -> None:
    assert not outage({f"stranger-{number}": lost_at(99.9) for number in range(9)})


def test_a_node_that_sees_no_outage_stops() -> None:
    assert stand_after(None) is Stand.STOP


def test_a_node_serves_on_in_an_outage_and_for_most_of_a_lease_after_it() -> None:
    assert stand_after(100.0) is Stand.SERVING_ON
    assert stand_after(91.1) is Stand.SERVING_ON
    assert stand_after(91.0) is Stand.STOP


@given(delays, st.floats(1.0, 60.0), st.floats(0.001, 1.0))
def test_a_node_has_stopped_serving_on_before_the_operator_believes_an_expiry(
    outage_ended_at: float, ttl: float, skew_share: float
) -> None:
    # A skew of nothing leaves no room for the rounding of seconds.
    terms = LeaseTerms(ttl, skew_share * ttl)
    heard_last = outage_ended_at + WITNESS_VALIDITY_SECONDS
    believed_at = believed_again_at(outage_ended_at, terms)
    verdict = stand(NodeLease(0.0), terms, believed_at, group_size=3, outage_seen_at_seconds=heard_last)
    assert verdict is Stand.STOP


def test_strict_stops_even_in_an_outage() -> None:
    assert stand_after(100.0, LeasePolicy.STRICT) is Stand.STOP


@pytest.mark.parametrize("size", [1, 2])
def test_a_group_of_one_or_two_serves_on_because_its_expiry_proves_nothing(size: int) -> None:
    assert stand_after(None, size=size) is Stand.SERVING_ON


@given(
    st.sets(st.integers(0, 30), min_size=3).map(lambda numbers: frozenset(f"node-{n}" for n in numbers)),
    st.data(),
)
def test_node_and_operator_agree_when_they_know_the_same(group: frozenset[str], data: st.DataObject) -> None:
    lost = data.draw(st.sets(st.sampled_from(sorted(group)), min_size=1))
    words = {node: lost_at(99.0) if node in lost else held_at(99.0) for node in group}
    assert sees_outage(100.0, group=group, own_node=min(lost), words=words) == is_mass_loss(lost, group)


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
