"""Agents that are none, or not of the node that they say: they speak to a running operator by hand."""

from __future__ import annotations

import contextlib
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kvpool.wire.keepalive import agent_channel_options
from kvpool.wire.v1alpha1 import agent_pb2 as pb
from kvpool.wire.v1alpha1 import agent_pb2_grpc as rpc
from tests.system.failover.world import FailoverWorld

ANSWER_SECONDS = 10.0
AGENT_PORT, ENROLMENT_PORT = 8443, 8444


class Stranger:
    """Dials the operator of a world with a key of its own."""

    def __init__(self, world: FailoverWorld) -> None:
        self._world = world
        namespace = world.installed.namespace
        bundle = world.api.get("v1", "ConfigMap", "kvpool-ca", namespace)
        self._authority = bundle["data"]["ca.crt"].encode()
        self._key = ec.generate_private_key(ec.SECP256R1())

    def token(self, node: str, audience: str = "kvpool") -> str:
        """A token bound to the agent Pod of a node."""
        namespace = self._world.installed.namespace
        selector = "app.kubernetes.io/component=agent"
        pods = self._world.api.list("v1", "Pod", namespace, label_selector=selector)
        pod = next(pod for pod in pods if pod["spec"]["nodeName"] == node)
        return self._world.installed.plane.token(namespace, "kvpool-agent", audience, pod)

    def enrol(self, token: str, node: str) -> bytes:
        """Return a certificate. Raises grpc.RpcError when it is refused."""
        request = (
            x509.CertificateSigningRequestBuilder()
            .subject_name(x509.Name([]))
            .sign(self._key, hashes.SHA256())
        )
        pem = request.public_bytes(serialization.Encoding.PEM)
        with self._channel(ENROLMENT_PORT, grpc.ssl_channel_credentials(self._authority)) as channel:
            wanted = pb.EnrollRequest(csr_pem=pem, token=token, node_name=node)
            answer = rpc.EnrolmentServiceStub(channel).Enroll(wanted, timeout=ANSWER_SECONDS)
        return bytes(answer.certificate_pem)

    def refusal(self, certificate: bytes, *messages: pb.ConnectRequest) -> tuple[grpc.StatusCode, str]:
        """Say these on a stream and return how the operator ended it."""
        key = self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        credentials = grpc.ssl_channel_credentials(self._authority, key, certificate)
        with self._channel(AGENT_PORT, credentials) as channel:
            call = rpc.AgentServiceStub(channel).Connect(iter(messages), timeout=ANSWER_SECONDS)
            with contextlib.suppress(grpc.RpcError):
                list(call)
            return call.code(), call.details()

    def _channel(self, port: int, credentials: grpc.ChannelCredentials) -> grpc.Channel:
        name = f"kvpool-agents.{self._world.installed.namespace}.svc"
        options = dict(agent_channel_options()) | {"grpc.ssl_target_name_override": name}
        address = self._world.installed.hosts["infra-0"].address
        return grpc.secure_channel(f"{address}:{port}", credentials, options=list(options.items()))


def hello(node: str, **fields: Any) -> pb.ConnectRequest:  # noqa: ANN401 - any field of Hello
    """The first message of a stream."""
    return pb.ConnectRequest(hello=pb.Hello(node_name=node, boot_id="boot", incarnation=1, **fields))
