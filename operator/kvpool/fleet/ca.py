"""The authority that signs operators and nodes: ECDSA P-256, nothing but certificates. Reads no clock."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SPIFFE_PREFIX: Final = "spiffe://kvpool/node/"
MAX_CSR_BYTES: Final = 8 << 10
CLOCK_SKEW: Final = timedelta(minutes=5)
"""Certificates begin this long before they are signed, for hosts whose clocks run behind."""

_AUTHORITY_LIFE: Final = timedelta(days=3650)
_SERVER_LIFE: Final = timedelta(days=7)
_NODE_LIFE: Final = timedelta(hours=24)


class AuthorityError(Exception):
    """The stored authority cannot be used; the message says why and what to do."""


class BadRequestError(ValueError):
    """A certificate signing request that is not signed; the message says why."""


@dataclass(frozen=True, slots=True)
class KeyAndCertificate:
    """A private key and its certificate, both PEM, and when to replace them."""

    key_pem: bytes
    certificate_pem: bytes
    renew_at: datetime


@dataclass(frozen=True, slots=True)
class NodeCertificate:
    """A node's certificate (PEM), and in how many seconds the agent shall enrol again."""

    certificate_pem: bytes
    renew_after_seconds: int


class Authority:
    """A certificate authority's key and certificate."""

    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self._key = key
        self._certificate = certificate

    @classmethod
    def create(cls, now: datetime) -> Authority:
        """A new authority with a fresh key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kvpool-ca")])
        certificate = (
            _builder(name, name, key.public_key(), now, _AUTHORITY_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    @classmethod
    def read(cls, key_pem: bytes, certificate_pem: bytes, now: datetime) -> Authority:
        """The authority that was stored earlier. Raises AuthorityError."""
        try:
            key = serialization.load_pem_private_key(key_pem, password=None)
            certificate = x509.load_pem_x509_certificate(certificate_pem)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise AuthorityError(f"key or certificate is not readable PEM: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise AuthorityError(f"the key is a {type(key).__name__}, not an elliptic curve key")
        if certificate.public_key() != key.public_key():
            raise AuthorityError("the certificate was not made for the key")
        if certificate.not_valid_after_utc <= now:
            raise AuthorityError(f"the certificate ended at {certificate.not_valid_after_utc.isoformat()}")
        return cls(key, certificate)

    @property
    def certificate_pem(self) -> bytes:
        """The certificate that everybody trusts."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key, for the Secret alone."""
        return _key_pem(self._key)

    def issue_server(self, names: Sequence[str], now: datetime) -> KeyAndCertificate:
        """A key and a serving certificate for DNS names and addresses. Raises ValueError without any."""
        if not names:
            raise ValueError("a serving certificate needs at least one DNS name or address")
        key = ec.generate_private_key(ec.SECP256R1())
        alternative = x509.SubjectAlternativeName([_general_name(name) for name in names])
        purpose = ExtendedKeyUsageOID.SERVER_AUTH
        certificate = self._issue(
            "kvpool-operator", key.public_key(), alternative, purpose, now, _SERVER_LIFE
        )
        return KeyAndCertificate(_key_pem(key), certificate, now + _SERVER_LIFE * 2 / 3)

    def issue_node(self, csr_pem: bytes, node: str, now: datetime) -> NodeCertificate:
        """A client certificate that names `node`, for the key of the request.

        Nothing but the public key is taken from the request, whose signature proves that the sender has the
        private key. Raises BadRequestError.
        """
        public_key = requested_key(csr_pem)
        alternative = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(SPIFFE_PREFIX + node)])
        purpose = ExtendedKeyUsageOID.CLIENT_AUTH
        certificate = self._issue("kvpool-agent", public_key, alternative, purpose, now, _NODE_LIFE)
        return NodeCertificate(certificate, int(_NODE_LIFE.total_seconds() * 2 / 3))

    def _issue(
        self,
        common_name: str,
        public_key: ec.EllipticCurvePublicKey,
        alternative: x509.SubjectAlternativeName,
        purpose: x509.ObjectIdentifier,
        now: datetime,
        life: timedelta,
    ) -> bytes:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        certificate = (
            _builder(subject, self._certificate.subject, public_key, now, life)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(alternative, critical=False)
            .add_extension(signer, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)


def requested_key(csr_pem: bytes) -> ec.EllipticCurvePublicKey:
    """The public key of a well-formed, self-signed P-256 request. Raises BadRequestError."""
    if len(csr_pem) > MAX_CSR_BYTES:
        raise BadRequestError(f"the request has {len(csr_pem)} bytes, at most {MAX_CSR_BYTES} are read")
    try:
        request = x509.load_pem_x509_csr(csr_pem)
        public_key = request.public_key()
        valid = request.is_signature_valid
    except (ValueError, UnsupportedAlgorithm, InvalidSignature) as error:
        raise BadRequestError(f"the request is not a readable PEM signing request: {error}") from error
    if not isinstance(public_key, ec.EllipticCurvePublicKey) or public_key.curve.name != "secp256r1":
        raise BadRequestError("the request's key is not an ECDSA key on curve P-256")
    if not valid:
        raise BadRequestError("the request is not signed by its own key")
    return public_key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
