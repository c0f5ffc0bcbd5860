"""The agent's certificate: asked for with the pod's token, kept in the state directory, renewed in time."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kvpool.wire.keepalive import agent_channel_options
from kvpool.wire.v1alpha1 import agent_pb2, agent_pb2_grpc
from kvpool_agent.timing import (
    ENROL_AGAIN_SECONDS,
    ENROL_RETRY_FIRST_SECONDS,
    ENROL_RETRY_MOST_SECONDS,
    ENROL_SECONDS,
)
from kvpool_keeper.contract import read_small, replace_whole

log = structlog.get_logger()

KEY_FILE, CERTIFICATE_FILE, AUTHORITIES_FILE = "key.pem", "certificate.pem", "authorities.pem"
RENEW_AT_LIFE_SHARE = 2 / 3


class EnrolmentError(Exception):
    """No certificate can be had now; the message says what was missing or who refused."""


@dataclass(frozen=True)
class Identity:
    """What the agent shows to operators, and how it knows them."""

    key_pem: bytes
    certificate_pem: bytes
    authorities_pem: bytes
    renew_at: datetime

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Return credentials for mutual TLS."""
        return grpc.ssl_channel_credentials(self.authorities_pem, self.key_pem, self.certificate_pem)


@dataclass(frozen=True)
class EnrolmentOptions:
    """Where to enrol and with what."""

    node_name: str
    address: str
    """HOST:PORT of the enrolment service."""
    token_file: Path
    ca_file: Path
    server_name: str
    """Name in the operator's certificate; empty for the dialled host."""


class Enrolment:
    """Hands out a valid identity. The private key never leaves the folder."""

    def __init__(self, folder: Path, options: EnrolmentOptions, beat: Callable[[], None]) -> None:
        self._folder = folder
        self._beat = beat
        self._options = options
        self._identity: Identity | None = None

    def load(self) -> None:
        """Take the certificate of an earlier start, if it is still good for this node."""
        try:
            identity = Identity(
                key_pem=read_small(self._folder / KEY_FILE, follow=False),
                certificate_pem=read_small(self._folder / CERTIFICATE_FILE, follow=False),
                authorities_pem=read_small(self._folder / AUTHORITIES_FILE, follow=False),
                renew_at=datetime.now(UTC),
            )
            certificate = x509.load_pem_x509_certificate(identity.certificate_pem)
            key = serialization.load_pem_private_key(identity.key_pem, None)
            if key.public_key() != certificate.public_key():
                raise ValueError("the key is not the certificate's")  # noqa: TRY301 - one way out
            named = _names(certificate, self._options.node_name)
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm, x509.DuplicateExtension) as error:
            log.warning("kept certificate is unreadable", error=str(error))
            return
        if not named or certificate.not_valid_after_utc < datetime.now(UTC):
            log.info("kept certificate is of another node or ran out")
            return
        self._identity = Identity(
            identity.key_pem, identity.certificate_pem, identity.authorities_pem, _renew_at(certificate)
        )

    def distrust(self) -> None:
        """Ask for a new certificate next time: perhaps no operator takes this one. Until then it is used."""
        if self._identity is not None:
            self._identity = dataclasses.replace(self._identity, renew_at=datetime.now(UTC))

    async def identity(self) -> Identity:
        """Return a certificate that need not be renewed yet; waits and retries as long as it takes."""
        wait = ENROL_RETRY_FIRST_SECONDS
        while True:
            self._beat()
            if self._identity is not None and datetime.now(UTC) < self._identity.renew_at:
                return self._identity
            try:
                self._identity = await self._enrol()
            except (EnrolmentError, OSError) as error:
                log.warning("enrolment failed", retry_in_seconds=round(wait, 1), error=str(error))
                if self._identity is not None and _still_valid(self._identity):
                    return self._identity
            else:
                return self._identity
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret
            wait = min(wait * 2, ENROL_RETRY_MOST_SECONDS)

    async def _enrol(self) -> Identity:
        """Ask once. Raises EnrolmentError or OSError."""
        options = self._options
        token = _text_of(await asyncio.to_thread(_read, options.token_file, "token"), options.token_file)
        authorities = await asyncio.to_thread(_read, options.ca_file, "operator's authority")
        key = ec.generate_private_key(ec.SECP256R1())
        request = agent_pb2.EnrollRequest(
            csr_pem=_signing_request(key, options.node_name),
            token=token.strip(),
            node_name=options.node_name,
        )
        channel = grpc.aio.secure_channel(
            options.address,
            grpc.ssl_channel_credentials(authorities),
            options=channel_options(options.server_name),
        )
        async with channel:
            stub = agent_pb2_grpc.EnrolmentServiceStub(channel)
            try:
                wait = ENROL_SECONDS if self._identity is None else ENROL_AGAIN_SECONDS
                response = await stub.Enroll(request, timeout=wait)
            except grpc.aio.AioRpcError as error:
                raise EnrolmentError(
                    f"{options.address} answered {error.code().name}: {error.details()}"
                ) from error
        return await asyncio.to_thread(self._keep, key, response)

    def _keep(self, key: ec.EllipticCurvePrivateKey, response: agent_pb2.EnrollResponse) -> Identity:
        try:
            certificate = x509.load_pem_x509_certificate(response.certificate_pem)
            named = _names(certificate, self._options.node_name)
            x509.load_pem_x509_certificates(response.ca_pem)
        except (ValueError, x509.DuplicateExtension) as error:
            raise EnrolmentError(f"a certificate of the answer is unreadable: {error}") from error
        if not named:
            raise EnrolmentError(f"the certificate of the answer does not name {self._options.node_name}")
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        for name, content in (
            (KEY_FILE, key_pem),
            (CERTIFICATE_FILE, response.certificate_pem),
            (AUTHORITIES_FILE, response.ca_pem),
        ):
            replace_whole(self._folder / name, content, durable=True)
        renew_at = _renew_at(certificate)
        if response.renew_after_seconds:
            life_seconds = (renew_at - datetime.now(UTC)).total_seconds()
            renew_at -= timedelta(seconds=max(0.0, life_seconds - response.renew_after_seconds))
        log.info("enrolled", node=self._options.node_name, renew_at=renew_at.isoformat())
        return Identity(key_pem, response.certificate_pem, response.ca_pem, renew_at)


def channel_options(server_name: str) -> tuple[tuple[str, int | str], ...]:
    """Return the options of a channel to an operator."""
    if not server_name:
        return agent_channel_options()
    return (*agent_channel_options(), ("grpc.ssl_target_name_override", server_name))


def _read(path: Path, what: str) -> bytes:
    try:
        content = read_small(path, follow=True)
    except FileNotFoundError:
        raise EnrolmentError(f"{what}: waiting for {path} to appear") from None
    if not content.strip():
        raise EnrolmentError(f"{what}: {path} is empty")
    return content


def _text_of(token: bytes, path: Path) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError as error:
        raise EnrolmentError(f"token: {path} is no text: {error}") from error


def _signing_request(key: ec.EllipticCurvePrivateKey, node_name: str) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, node_name[:64])])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.UniformResourceIdentifier(_node_uri(node_name))]), critical=False
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _node_uri(node_name: str) -> str:
    return f"spiffe://kvpool/node/{node_name}"


def _names(certificate: x509.Certificate, node_name: str) -> bool:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    return _node_uri(node_name) in names.get_values_for_type(x509.UniformResourceIdentifier)


def _renew_at(certificate: x509.Certificate) -> datetime:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_before_utc + life * RENEW_AT_LIFE_SHARE


def _still_valid(identity: Identity) -> bool:
    certificate = x509.load_pem_x509_certificate(identity.certificate_pem)
    return datetime.now(UTC) < certificate.not_valid_after_utc
