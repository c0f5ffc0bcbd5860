"""An agent that says exactly what a test tells it, over a real mutual TLS connection."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from grpc import aio

from kvpool.fleet.ca import Authority
from kvpool.wire.keepalive import agent_channel_options
from kvpool.wire.v1alpha1 import agent_pb2 as pb
from kvpool.wire.v1alpha1 import agent_pb2_grpc as rpc

ANSWER_SECONDS = 5.0
SERVER_NAME = "kvpool-operator.test.svc"


def channel(port: int, credentials: grpc.ChannelCredentials) -> aio.Channel:
    """As agents dial, but with messages of any length."""
    own = {"grpc.ssl_target_name_override": SERVER_NAME, "grpc.max_send_message_length": -1}
    options = dict(agent_channel_options()) | own
    return aio.secure_channel(f"127.0.0.1:{port}", credentials, options=list(options.items()))


def signing_request(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, padding: int = 0) -> bytes:
    """A PEM request; `padding` makes it longer by so many bytes or more."""
    names = [x509.DNSName("x" * 60 + ".test") for _ in range(padding // 60 + 1)]
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([]))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return request.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def hello(node: str = "node-1", **fields: Any) -> pb.ConnectRequest:  # noqa: ANN401 - any field of Hello
    given = {"boot_id": "boot-a", "incarnation": 1, "agent_version": "0.1.0", **fields}
    return pb.ConnectRequest(hello=pb.Hello(node_name=node, **given))


def renew(seq: int, *reachability: pb.PeerReachability, roster_revision: int = 0) -> pb.ConnectRequest:
    message = pb.Renew(seq=seq, roster_revision=roster_revision, reachability=reachability)
    return pb.ConnectRequest(renew=message)


def report(**fields: Any) -> pb.ConnectRequest:  # noqa: ANN401 - any field of Report
    return pb.ConnectRequest(report=pb.Report(**fields))


class ScriptedAgent:
    """One stream. `expect` has a deadline; `refusal` reads to the end and returns the status."""

    def __init__(self, opened: aio.Channel) -> None:
        self._channel = opened
        self._call = rpc.AgentServiceStub(opened).Connect()

    @classmethod
    def with_certificate(
        cls, node: str, signer: Authority, trusted: bytes, port: int, now: datetime
    ) -> ScriptedAgent:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = signer.issue_node(signing_request(key), node, now).certificate_pem
        return cls(channel(port, grpc.ssl_channel_credentials(trusted, key_pem(key), certificate)))

    async def say(self, *messages: pb.ConnectRequest) -> None:
        async with asyncio.timeout(ANSWER_SECONDS):
            for message in messages:
                await self._call.write(message)

    async def hear(self) -> pb.ConnectResponse:
        """The next message. Raises EOFError at the end of the stream, AioRpcError when it was refused."""
        async with asyncio.timeout(ANSWER_SECONDS):
            message = await self._call.read()
        if isinstance(message, pb.ConnectResponse):
            return message
        code = await self._call.code()
        assert code is grpc.StatusCode.OK, f"the stream ended with {code}: {await self._call.details()}"
        raise EOFError

    async def expect(self, kind: str) -> Any:  # noqa: ANN401 - the type depends on the kind
        """The next message, which must be of this kind."""
        message = await self.hear()
        assert message.WhichOneof("message") == kind, message
        return getattr(message, kind)

    async def refusal(self) -> tuple[grpc.StatusCode, str]:
        """How the operator ended the stream, after all that it said before."""
        async with asyncio.timeout(ANSWER_SECONDS):
            with contextlib.suppress(aio.AioRpcError):
                while isinstance(await self._call.read(), pb.ConnectResponse):
                    pass
            return await self._call.code(), await self._call.details() or ""

    async def hang_up(self) -> None:
        """Break the connection without a word."""
        await self._channel.close()

    async def close(self) -> None:
        self._call.cancel()
        await self._channel.close()
