"""What enrolment decides where the API server is slow, away, or says something unusual."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kvpool.fleet.access import PodPlace, TokenVerdict
from kvpool.fleet.ca import Authority
from kvpool.fleet.enrolment import Enrolment, EnrolmentRequest
from kvpool.fleet.rate import RateLimit
from kvpool.fleet.refusals import Reason, RefusedError
from kvpool.fleet.settings import EnrolmentRules
from kvpool.model.ids import ObjectKey
from tests.fleet.agents import signing_request
from tests.fleet.doubles import MemoryAccess

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RULES = EnrolmentRules(ObjectKey("ns", "agent"), reviews_per_second=1.0, reviews_burst=2)
REQUEST = EnrolmentRequest(signing_request(ec.generate_private_key(ec.SECP256R1())), "good", "node-1")
VERDICT = TokenVerdict(
    authenticated=True,
    username="system:serviceaccount:ns:agent",
    audiences=("kvpool",),
    extra={
        "authentication.kubernetes.io/pod-name": ("pod-a",),
        "authentication.kubernetes.io/pod-uid": ("uid-a",),
        "authentication.kubernetes.io/node-name": ("node-1",),
    },
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def enrolment(access: MemoryAccess, clock: Clock) -> Enrolment:
    access.verdicts["good"] = VERDICT
    access.pods[ObjectKey("ns", "pod-a"), "uid-a"] = PodPlace("node-1")
    return Enrolment(access, Authority.create(NOW), RULES, clock, lambda: NOW)


async def reason_of(enrolment: Enrolment, request: EnrolmentRequest = REQUEST) -> Reason:
    with pytest.raises(RefusedError) as refusal:
        await enrolment.enrol(request)
    return refusal.value.reason


async def test_a_review_is_asked_for_once_in_ten_seconds(
    enrolment: Enrolment, access: MemoryAccess, clock: Clock
) -> None:
    await enrolment.enrol(REQUEST)
    clock.now += 9.9
    await enrolment.enrol(REQUEST)
    assert access.reviews == 1
    clock.now += 0.2
    await enrolment.enrol(REQUEST)
    assert access.reviews == 2


async def test_more_reviews_than_the_rate_allows_are_refused_until_later(
    enrolment: Enrolment, access: MemoryAccess, clock: Clock
) -> None:
    for token in ("a", "b"):
        assert await reason_of(enrolment, replace(REQUEST, token=token)) is Reason.TOKEN_REFUSED
    assert await reason_of(enrolment) is Reason.TOO_MANY
    assert access.reviews == 2
    clock.now += 1.0
    await enrolment.enrol(REQUEST)


async def test_what_is_malformed_costs_no_review(enrolment: Enrolment, access: MemoryAccess) -> None:
    assert await reason_of(enrolment, replace(REQUEST, csr_pem=b"junk")) is Reason.BAD_REQUEST
    assert access.reviews == 0


async def test_while_the_api_server_is_away_agents_are_told_to_come_again(
    enrolment: Enrolment, access: MemoryAccess
) -> None:
    access.down = True
    assert await reason_of(enrolment) is Reason.API_UNAVAILABLE
    access.down = False
    await enrolment.enrol(REQUEST)  # the failure was not remembered
    access.down = True
    assert await reason_of(enrolment) is Reason.API_UNAVAILABLE  # now it is the pod that cannot be looked up


async def test_an_accepted_token_still_has_to_be_meant_for_us(
    enrolment: Enrolment, access: MemoryAccess
) -> None:
    access.verdicts["good"] = replace(VERDICT, audiences=("another",))
    assert await reason_of(enrolment) is Reason.WRONG_AUDIENCE


async def test_a_token_and_a_pod_that_name_different_nodes_enrol_neither(
    enrolment: Enrolment, access: MemoryAccess
) -> None:
    access.pods[ObjectKey("ns", "pod-a"), "uid-a"] = PodPlace("node-2")
    assert await reason_of(enrolment) is Reason.WRONG_NODE
    assert await reason_of(enrolment, replace(REQUEST, node_name="node-2")) is Reason.WRONG_NODE


def test_a_rate_limit_fills_up_again_with_time_but_never_beyond_its_burst() -> None:
    limit = RateLimit(per_second=2.0, burst=3)
    assert [limit.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [limit.take(0.5), limit.take(0.5)] == [True, False]
    assert [limit.take(60.0) for _ in range(4)] == [True, True, True, False]
