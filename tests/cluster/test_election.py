"""Who may lead: the decision as a table, and any interleaving of candidates as a model."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvpool.api import labels
from kvpool.api.epoch import MOST_OPERATOR_EPOCH
from kvpool.cluster.election import (
    MOST_BELIEVED_EPOCH,
    Acquire,
    Claim,
    Decision,
    LeaseRecord,
    LeaseTiming,
    Observed,
    Renew,
    Wait,
    elect,
    observe,
)

WALL = datetime(2026, 5, 4, 3, 2, 1, 7, tzinfo=UTC)
TIMING = LeaseTiming()


def record(holder: str, *, duration: float = 6, epoch: int = 1, renewed: str = "r") -> LeaseRecord:
    return LeaseRecord(holder, renewed, 0, duration, epoch)


@pytest.mark.parametrize(
    ("observed", "now", "decision"),
    [
        (None, 100.0, Acquire()),
        (Observed(record(""), 100.0), 100.0, Acquire()),
        (Observed(record("me"), 100.0), 100.1, Renew()),
        (Observed(record("me"), 100.0), 900.0, Renew()),
        (Observed(record("other"), 100.0), 100.1, Wait(106.0)),
        (Observed(record("other"), 100.0), 106.0, Wait(106.0)),
        (Observed(record("other"), 100.0), 106.1, Acquire()),
        (Observed(record("other", duration=15), 100.0), 110.0, Wait(115.0)),
        (Observed(record("other", duration=2**31 - 1), 100.0), 110.0, Wait(160.0)),
        (Observed(record("other", duration=0), 100.0), 105.0, Wait(106.0)),
        (Observed(record("other", duration=-9), 100.0), 105.0, Wait(106.0)),
    ],
)
def test_a_candidate_takes_renews_or_waits(observed: Observed | None, now: float, decision: Decision) -> None:
    assert elect(observed, "me", now, 6.0) == decision


def lease(holder: str, renewed: str = "r", **annotations: str) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 6}
    return {"metadata": {"name": "l", "namespace": "n", "annotations": annotations}, "spec": spec}


def test_only_a_change_of_what_the_lease_says_starts_the_time_anew() -> None:
    first = observe(None, lease("other"), 10.0)
    touched = observe(first, lease("other") | {"metadata": {"labels": {"a": "b"}}}, 15.0)
    renewed = observe(first, lease("other", "later"), 15.0)

    assert first is not None
    assert touched is not None
    assert renewed is not None
    assert (first.since, touched.since, renewed.since) == (10.0, 10.0, 15.0)
    assert observe(first, None, 20.0) is None


def test_a_wall_clock_in_the_lease_decides_nothing() -> None:
    ancient, future = lease("other", "1970-01-01T00:00:00.0Z"), lease("other", "2999-01-01T00:00:00.0Z")
    for one in (ancient, future):
        assert elect(observe(None, one, 10.0), "me", 10.0, 6.0) == Wait(16.0)


@pytest.mark.parametrize("text", [None, "", "x", "-1", "1.5", "٣", str(2**41 + 1), "9" * 5000])
def test_a_malformed_epoch_counts_as_none(text: str | None) -> None:
    annotations = {} if text is None else {labels.OPERATOR_EPOCH: text}
    assert LeaseRecord.of(lease("other", **annotations)).epoch == 0


def test_the_highest_epoch_that_is_believed_leaves_room_to_rise() -> None:
    assert LeaseRecord.of(lease("other", **{labels.OPERATOR_EPOCH: str(2**41)})).epoch == 2**41
    assert 2 * MOST_BELIEVED_EPOCH > MOST_OPERATOR_EPOCH > MOST_BELIEVED_EPOCH


def test_the_count_of_transitions_stays_within_what_the_api_takes() -> None:
    current = lease("other")
    current["spec"]["leaseTransitions"] = 2**31 - 1
    taken = Claim("me", 5, WALL, TIMING).manifest("l", "n", current)
    assert taken["spec"]["leaseTransitions"] == 2**31 - 1


def test_an_empty_lease_is_free() -> None:
    found = LeaseRecord.of({"metadata": {}})
    assert found == LeaseRecord("", "", 0, 0.0, 0)


def test_a_claim_counts_the_transition_and_keeps_what_others_wrote() -> None:
    current = lease("other", note="theirs", **{labels.OPERATOR_EPOCH: "4"})
    current["metadata"]["resourceVersion"] = "17"
    current["spec"] |= {"leaseTransitions": 2, "strategy": "kept"}

    taken = Claim("me", 5, WALL, TIMING).manifest("l", "n", current)
    renewed = Claim("me", 5, WALL, TIMING).manifest("l", "n", taken)
    released = Claim("me", 5, WALL, TIMING).released(taken)

    assert taken["metadata"]["annotations"] == {"note": "theirs", labels.OPERATOR_EPOCH: "5"}
    assert taken["metadata"]["resourceVersion"] == "17", "a compare-and-swap"
    assert taken["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 6,
        "acquireTime": "2026-05-04T03:02:01.000007Z",
        "renewTime": "2026-05-04T03:02:01.000007Z",
        "leaseTransitions": 3,
        "strategy": "kept",
    }
    assert renewed["spec"]["leaseTransitions"] == 3
    assert released["spec"]["holderIdentity"] == ""
    assert LeaseRecord.of(released).epoch == 5


@pytest.mark.parametrize(
    ("retry", "renew", "duration"), [(0, 4, 6), (4, 4, 6), (1, 6, 6), (1, 7, 6), (-1, 4, 6)]
)
def test_timing_without_a_gap_between_stopping_and_starting_is_refused(
    retry: float, renew: float, duration: float
) -> None:
    with pytest.raises(ValueError, match="0 < retry < renew < duration"):
        LeaseTiming(duration, renew, retry)


class Server:
    """One Lease with compare-and-swap, and the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.epochs: list[int] = []

    def write(self, manifest: dict[str, Any], version: int) -> bool:
        if version != self.version:
            return False
        self.version += 1
        # The wall clock in the model stands still, so what says "renewed" is the version.
        self.lease = {**manifest, "spec": {**manifest["spec"], "renewTime": str(self.version)}}
        return True


class Candidate:
    """A process that may be held between any two of: read, decide, send, be carried out, be answered."""

    def __init__(self, server: Server, me: str) -> None:
        self.server = server
        self.me = me
        self.renewed_at: float | None = None
        self.steps = self.run()

    def holds(self) -> bool:
        return self.renewed_at is not None and self.server.now - self.renewed_at < TIMING.renew_seconds

    def run(self) -> Generator[None, None, None]:
        observed: Observed | None = None
        while True:
            lease, version = self.server.lease, self.server.version
            yield
            observed = observe(observed, lease, self.server.now)
            if isinstance(elect(observed, self.me, self.server.now, TIMING.duration_seconds), Wait):
                yield
                continue
            epoch = (LeaseRecord.of(lease).epoch if lease is not None else 0) + 1
            sent = self.server.now
            manifest = Claim(self.me, epoch, WALL, TIMING).manifest("l", "n", lease)
            yield
            won = self.server.write(manifest, version)
            if won:
                self.server.epochs.append(epoch)
            yield
            if won:
                self.renewed_at = sent
                yield from self.lead(epoch)

    def lead(self, epoch: int) -> Generator[None, None, None]:
        yield
        while self.holds():
            lease, version, sent = self.server.lease, self.server.version, self.server.now
            if LeaseRecord.of(lease or {"metadata": {}}).holder != self.me:
                break
            manifest = Claim(self.me, epoch, WALL, TIMING).manifest("l", "n", lease)
            yield
            won = self.server.write(manifest, version)
            yield
            if not won:
                break
            self.renewed_at = sent
            yield
        self.renewed_at = None


bursts = st.tuples(st.integers(0, 1), st.integers(1, 6), st.sampled_from([0.0, 0.5, 2.0, 3.5, 6.5]))


@settings(max_examples=400)
@given(st.lists(bursts, min_size=3, max_size=30))
def test_at_no_time_do_two_candidates_hold_the_lease_and_epochs_only_rise(
    schedule: list[tuple[int, int, float]],
) -> None:
    server = Server()
    candidates = [Candidate(server, f"c{number}") for number in range(2)]
    for number, steps, pause in schedule:
        for _ in range(steps):
            next(candidates[number].steps)
            assert sum(candidate.holds() for candidate in candidates) <= 1
        server.now += pause
        assert sum(candidate.holds() for candidate in candidates) <= 1
    assert server.epochs == sorted(set(server.epochs))
