"""Certificates say no more than they have to, and the authority is one and the same for everybody."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from kvpool.fleet.ca import MAX_CSR_BYTES, Authority, AuthorityError, BadRequestError
from tests.fleet.agents import signing_request

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create(NOW)


def a_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def test_a_nodes_certificate_names_the_node_for_a_day_and_is_for_clients_alone(authority: Authority) -> None:
    key = a_key()
    issued = authority.issue_node(signing_request(key), "node-7", NOW)
    certificate = x509.load_pem_x509_certificate(issued.certificate_pem)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["spiffe://kvpool/node/node-7"]
    assert len(list(names)) == 1  # nothing of what the request asked for
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert certificate.public_key() == key.public_key()
    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=5)
    assert certificate.not_valid_after_utc == NOW + timedelta(hours=24)
    assert issued.renew_after_seconds == 16 * 3600
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate_pem))


def test_a_serving_certificate_is_good_for_names_and_addresses(authority: Authority) -> None:
    issued = authority.issue_server(("kvpool.ns.svc", "10.0.0.1", "fd00::1"), NOW)
    certificate = x509.load_pem_x509_certificate(issued.certificate_pem)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["kvpool.ns.svc"]
    addresses = [ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("fd00::1")]
    assert names.get_values_for_type(x509.IPAddress) == addresses
    assert NOW < issued.renew_at < certificate.not_valid_after_utc


def test_a_request_that_is_too_long_is_not_read() -> None:
    authority = Authority.create(NOW)
    with pytest.raises(BadRequestError, match=f"at most {MAX_CSR_BYTES}"):
        authority.issue_node(signing_request(a_key(), padding=MAX_CSR_BYTES), "node-7", NOW)


def test_a_request_with_another_kind_of_key_is_refused(authority: Authority) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(BadRequestError, match="P-256"):
        authority.issue_node(signing_request(key), "node-7", NOW)


def test_a_request_that_is_none_is_refused(authority: Authority) -> None:
    with pytest.raises(BadRequestError, match="not a readable PEM"):
        authority.issue_node(b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n", "node-7", NOW)


def test_a_request_signed_by_another_key_is_refused(authority: Authority) -> None:
    request = x509.load_pem_x509_csr(signing_request(a_key()))
    forged = bytearray(request.public_bytes(serialization.Encoding.DER))
    position = forged.find(request.signature)
    forged[position + 10] ^= 0x01
    pem = x509.load_der_x509_csr(bytes(forged)).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(BadRequestError, match="not signed by its own key"):
        authority.issue_node(pem, "node-7", NOW)


def test_an_authority_is_read_back_as_it_was_stored(authority: Authority) -> None:
    again = Authority.read(authority.key_pem, authority.certificate_pem, NOW)
    issued = again.issue_node(signing_request(a_key()), "node-7", NOW)
    certificate = x509.load_pem_x509_certificate(issued.certificate_pem)
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.certificate_pem))


def test_a_stored_authority_that_cannot_be_used_says_why(authority: Authority) -> None:
    other = Authority.create(NOW)
    with pytest.raises(AuthorityError, match="not made for the key"):
        Authority.read(authority.key_pem, other.certificate_pem, NOW)
    with pytest.raises(AuthorityError, match="not readable PEM"):
        Authority.read(b"", authority.certificate_pem, NOW)
    with pytest.raises(AuthorityError, match="ended at 2036"):
        Authority.read(authority.key_pem, authority.certificate_pem, NOW + timedelta(days=3651))
