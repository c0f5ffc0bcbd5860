"""The operator's end of the agent protocol, told by a test what to say; in a thread with its own loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool.wire.v1alpha1 import agent_pb2_grpc
from tests.harness.waiting import wait_until

SERVER_NAME = "kvpool-operator.test"
START_SECONDS = 10.0
SECOND_WELCOME_SECONDS = 0.05
Context = grpc.aio.ServicerContext[Any, Any]
PublicKey = CertificatePublicKeyTypes


class Authority:
    """A certificate authority of one test."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = (
            _builder(name, name, self.key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def server(self) -> tuple[bytes, bytes]:
        """Return key and certificate of an operator, in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.DNSName(SERVER_NAME), x509.IPAddress(ip_address("127.0.0.1"))]
        )
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SERVER_NAME)])
        certificate = self._sign(name, key.public_key(), names, ExtendedKeyUsageOID.SERVER_AUTH)
        key_pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return key_pem, certificate

    def node(self, csr_pem: bytes, node_name: str) -> bytes:
        """Sign an agent's request for `node_name`."""
        request = x509.load_pem_x509_csr(csr_pem)
        names = x509.SubjectAlternativeName(
            [x509.UniformResourceIdentifier(f"spiffe://kvpool/node/{node_name}")]
        )
        return self._sign(request.subject, request.public_key(), names, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _sign(
        self,
        name: x509.Name,
        key: PublicKey,
        names: x509.SubjectAlternativeName,
        usage: x509.ObjectIdentifier,
    ) -> bytes:
        certificate = (
            _builder(name, self.certificate.subject, key)
            .add_extension(names, critical=False)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)


@dataclass
class Script:
    """What the operator says; tests change it at any time."""

    epoch: int = 7
    ttl_ms: int = 10_000
    strict: bool = False
    leads: bool = True
    grants: bool = True
    deaf_to: frozenset[str] = frozenset()
    """Nodes whose Renews are not answered."""
    plan: wire.NodePlan | None = None
    roster: wire.Roster | None = None
    one_stream_a_node: bool = False
    """Whether a Hello ends the node's older streams, and its Welcome comes a moment later than theirs."""
    refuses_token: str = ""
    certificate_names: str = ""
    """Another node's name to put into certificates."""


@dataclass
class Heard:
    """What the agent said."""

    enrolments: list[wire.EnrollRequest] = field(default_factory=list)
    hellos: list[wire.Hello] = field(default_factory=list)
    reports: list[wire.Report] = field(default_factory=list)
    renews: list[wire.Renew] = field(default_factory=list)
    renews_of: dict[str, list[wire.Renew]] = field(default_factory=dict)
    evidence: list[wire.Evidence] = field(default_factory=list)
    leaving: list[wire.Leaving] = field(default_factory=list)
    streams_ended: int = 0


class ScriptedOperator(agent_pb2_grpc.EnrolmentServiceServicer, agent_pb2_grpc.AgentServiceServicer):
    """Both services, over real TLS."""

    def __init__(self, authority: Authority, address: str = "127.0.0.1") -> None:
        self.authority = authority
        self.script = Script()
        self.heard = Heard()
        self._address = address
        self._plans: set[asyncio.Queue[wire.NodePlan]] = set()
        self._newest: dict[str, asyncio.Queue[Any]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[grpc.aio.Server] = []
        self.agent_port = self.enrol_port = 0

    def start(self, agent_port: int = 0) -> ScriptedOperator:
        self._thread.start()
        self._call(self._start(agent_port)).result(START_SECONDS)
        return self

    def kill_servers(self) -> None:
        """Go away at once, as a killed process does."""
        self._call(self._stop()).result(START_SECONDS)

    def stop(self) -> None:
        """End everything."""
        self.kill_servers()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_SECONDS)
        self._loop.close()

    def plan(self, **fields: object) -> wire.NodePlan:
        """Send a complete plan to whoever is connected and will be."""
        plan = wire.NodePlan(**{"operator_epoch": self.script.epoch, **fields})  # type: ignore[arg-type] # the fields are the message's own
        self.script.plan = plan

        def send() -> None:
            for queue in self._plans:
                queue.put_nowait(plan)

        self._loop.call_soon_threadsafe(send)
        return plan

    def forget_reports(self) -> None:
        """Let waiting begin with what is reported from now on."""
        self.heard.reports.clear()

    @property
    def report(self) -> wire.Report | None:
        """The newest Report, that of the Hello included."""
        return self.heard.reports[-1] if self.heard.reports else None

    def wait_for_report(
        self, what: str, predicate: Callable[[wire.Report], Any], deadline_seconds: float = 15.0
    ) -> wire.Report:
        """Wait for a Report that satisfies `predicate`, the newest one included."""
        report = wait_until(
            lambda: (r := self.report) is not None and predicate(r) and r,
            deadline_seconds,
            f"a report with {what}; last: {self.report}",
        )
        assert isinstance(report, wire.Report)
        return report

    def wait_for_unit(self, name: str, phase: str, deadline_seconds: float = 15.0) -> wire.UnitReport:
        report = self.wait_for_report(
            f"{name} {phase}", lambda r: unit_of(r, name, phase) is not None, deadline_seconds
        )
        unit = unit_of(report, name, phase)
        assert unit is not None
        return unit

    async def Enroll(  # noqa: N802 - the name is the protocol's
        self, request: wire.EnrollRequest, context: Context
    ) -> wire.EnrollResponse:
        self.heard.enrolments.append(request)
        if self.script.refuses_token and request.token == self.script.refuses_token:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is for another audience")
        named = self.script.certificate_names or request.node_name
        return wire.EnrollResponse(
            certificate_pem=self.authority.node(request.csr_pem, named),
            ca_pem=self.authority.pem,
            renew_after_seconds=600,
        )

    async def Connect(  # noqa: N802 - the name is the protocol's
        self, request_iterator: AsyncIterator[wire.ConnectRequest], context: Context
    ) -> AsyncIterator[wire.ConnectResponse]:
        hello = (await anext(request_iterator)).hello
        self.heard.hellos.append(hello)
        if not self.script.leads:
            yield wire.ConnectResponse(not_leader=wire.NotLeader(leader="another"))
            return
        self.heard.reports.append(hello.report)
        script = self.script
        queue: asyncio.Queue[Any] = asyncio.Queue()
        older = self._newest.get(hello.node_name)
        self._newest[hello.node_name] = queue
        if script.one_stream_a_node and older is not None:
            older.put_nowait(None)
            await asyncio.sleep(SECOND_WELCOME_SECONDS)
        yield wire.ConnectResponse(
            welcome=wire.Welcome(
                operator_epoch=script.epoch,
                ttl_ms=script.ttl_ms,
                max_skew_ms=1000,
                strict=script.strict,
                roster=script.roster,
            )
        )
        if script.plan is not None:
            queue.put_nowait(script.plan)
        self._plans.add(queue)
        listening = asyncio.create_task(self._listen(hello.node_name, request_iterator, queue))
        try:
            while (message := await queue.get()) is not None:
                if isinstance(message, wire.NodePlan):
                    yield wire.ConnectResponse(node_plan=message)
                else:
                    yield wire.ConnectResponse(grant=message)
        finally:
            listening.cancel()
            self._plans.discard(queue)
            self.heard.streams_ended += 1

    async def _listen(
        self, node_name: str, requests: AsyncIterator[wire.ConnectRequest], queue: asyncio.Queue[Any]
    ) -> None:
        try:
            async for request in requests:
                match request.WhichOneof("message"):
                    case "renew":
                        self.heard.renews.append(request.renew)
                        self.heard.renews_of.setdefault(node_name, []).append(request.renew)
                        if self.script.grants and node_name not in self.script.deaf_to:
                            queue.put_nowait(
                                wire.Grant(
                                    seq=request.renew.seq,
                                    ttl_ms=self.script.ttl_ms,
                                    operator_epoch=self.script.epoch,
                                )
                            )
                    case "report":
                        self.heard.reports.append(request.report)
                    case "evidence":
                        self.heard.evidence.append(request.evidence)
                    case "leaving":
                        self.heard.leaving.append(request.leaving)
        finally:
            queue.put_nowait(None)

    async def _start(self, agent_port: int) -> None:
        key, certificate = self.authority.server()
        enrol = grpc.aio.server()
        agent_pb2_grpc.add_EnrolmentServiceServicer_to_server(self, enrol)
        self.enrol_port = enrol.add_secure_port(
            f"{self._address}:0", grpc.ssl_server_credentials([(key, certificate)])
        )
        agents = grpc.aio.server(options=[("grpc.http2.min_recv_ping_interval_without_data_ms", 1000)])
        agent_pb2_grpc.add_AgentServiceServicer_to_server(self, agents)
        self.agent_port = agents.add_secure_port(
            f"{self._address}:{agent_port}",
            grpc.ssl_server_credentials([(key, certificate)], self.authority.pem, require_client_auth=True),
        )
        self._servers = [enrol, agents]
        for server in self._servers:
            await server.start()

    async def _stop(self) -> None:
        for server in self._servers:
            await server.stop(None)

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)


def unit_of(report: wire.Report, name: str, phase: str) -> wire.UnitReport | None:
    """Find a unit in a phase."""
    return next((unit for unit in report.units if (unit.name, unit.phase) == (name, phase)), None)


def _builder(subject: x509.Name, issuer: x509.Name, key: PublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
    )


def write(path: Path, text: str) -> Path:
    """Replace a file whole, as a mounted Secret or ConfigMap is."""
    beside = path.with_name(f"{path.name}.new")
    beside.write_text(text)
    beside.rename(path)
    return path
