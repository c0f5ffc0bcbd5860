"""Who is at the other end, and serving certificates that are made anew in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import grpc
import pytest

from kvpool.fleet.ca import Authority
from kvpool.fleet.refusals import Reason, RefusedError
from kvpool.fleet.tls import ServerIdentity, peer_node

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_the_certificates_name_is_the_node() -> None:
    assert peer_node({"peer_spiffe_id": [b"spiffe://kvpool/node/rack-1.node-7"]}) == "rack-1.node-7"


@pytest.mark.parametrize(
    "names",
    [
        [],
        [b"spiffe://kvpool/operator"],
        [b"spiffe://elsewhere/node/a"],
        [b"spiffe://kvpool/node/"],
        [b"spiffe://kvpool/node/a/b"],
        [b"spiffe://kvpool/node/A"],
        [b"spiffe://kvpool/node/a", b"spiffe://kvpool/node/b"],
    ],
)
def test_a_certificate_that_does_not_name_one_node_is_none(names: list[bytes]) -> None:
    with pytest.raises(RefusedError, match="names no node") as refusal:
        peer_node({"peer_spiffe_id": names})
    assert refusal.value.reason is Reason.NO_CERTIFICATE


def test_a_serving_certificate_is_made_anew_before_it_ends() -> None:
    now = [NOW]
    identity = ServerIdentity(Authority.create(NOW), ("a.test",), lambda: now[0])
    first = identity.current
    now[0] += timedelta(days=4)
    assert identity.current == first
    now[0] += timedelta(days=1)
    assert identity.current.certificate_pem != first.certificate_pem
    assert isinstance(identity.agent_credentials(), grpc.ServerCredentials)
