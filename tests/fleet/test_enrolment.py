"""Certificates for tokens, decided with the real API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from grpc import aio

from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject
from kvpool.cluster.rest import Access, Rest
from kvpool.control.agent_access import KubernetesAccess
from kvpool.fleet.ca import MAX_CSR_BYTES
from kvpool.fleet.fleet import Fleet
from kvpool.wire.keepalive import ENROLMENT_CONNECTION_SECONDS, ENROLMENT_GRACE_SECONDS
from kvpool.wire.v1alpha1 import agent_pb2 as pb
from kvpool.wire.v1alpha1 import agent_pb2_grpc as rpc
from tests.fleet.agents import ScriptedAgent, channel, hello, key_pem, signing_request
from tests.fleet.conftest import Told, loopback_settings
from tests.fleet.doubles import Counts

KEY = ec.generate_private_key(ec.SECP256R1())
REQUEST = signing_request(KEY)
ENROLL = f"/{pb.DESCRIPTOR.services_by_name['EnrolmentService'].full_name}/Enroll"


class Enroller:
    """Pods, their tokens, and calls of Enroll."""

    def __init__(self, plane: ControlPlane, namespace: str, fleet: Fleet, trusted: bytes) -> None:
        self._plane = plane
        self._namespace = namespace
        self._port = fleet.enrolment_port
        self.trusted = trusted
        for account in ("agent", "somebody"):
            metadata = {"name": account, "namespace": namespace}
            plane.admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})

    def pod(self, node: str | None, account: str = "agent", name: str = "agent-pod") -> JsonObject:
        spec: JsonObject = {
            "serviceAccountName": account,
            "containers": [{"name": "agent", "image": "none"}],
        }
        if node is not None:
            spec["nodeName"] = node
        metadata = {"name": name, "namespace": self._namespace}
        return self._plane.admin.create(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )

    def delete(self, pod: JsonObject) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods/{pod['metadata']['name']}"
        self._plane.admin.call("DELETE", path, {"gracePeriodSeconds": 0})

    def bind(self, pod: JsonObject, node: str) -> None:
        name = pod["metadata"]["name"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": self._namespace},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._plane.admin.call("POST", f"/api/v1/namespaces/{self._namespace}/pods/{name}/binding", binding)

    def token(self, pod: JsonObject | None, audience: str = "kvpool", account: str = "agent") -> str:
        return self._plane.token(self._namespace, account, audience, pod)

    async def enrol(self, token: str, node: str, csr: bytes = REQUEST) -> pb.EnrollResponse:
        async with channel(self._port, grpc.ssl_channel_credentials(self.trusted)) as opened:
            request = pb.EnrollRequest(csr_pem=csr, token=token, node_name=node)
            return await rpc.EnrolmentServiceStub(opened).Enroll(request, timeout=10)

    async def refusal(self, token: str, node: str, csr: bytes = REQUEST) -> tuple[grpc.StatusCode, str]:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await self.enrol(token, node, csr)
        return refused.value.code(), refused.value.details() or ""


@pytest.fixture
async def api_access(control_plane: ControlPlane, namespace: str) -> AsyncIterator[KubernetesAccess]:
    rest = await Rest.connect(Access(kubeconfig=control_plane.kubeconfig))
    yield KubernetesAccess(rest, namespace)
    await rest.close()


@pytest.fixture
async def fleet(
    api_access: KubernetesAccess, namespace: str, told: Told, counts: Counts
) -> AsyncIterator[Fleet]:
    running = Fleet(loopback_settings(namespace), api_access, told.callbacks, counts)
    await running.start()
    running.set_leader(7)
    yield running
    await running.stop()


@pytest.fixture
def enroller(control_plane: ControlPlane, namespace: str, fleet: Fleet) -> Enroller:
    bundle = control_plane.admin.call("GET", f"/api/v1/namespaces/{namespace}/configmaps/kvpool-ca")
    return Enroller(control_plane, namespace, fleet, bundle["data"]["ca.crt"].encode())


async def test_an_enrolled_agent_opens_its_stream(enroller: Enroller, fleet: Fleet, counts: Counts) -> None:
    token = enroller.token(enroller.pod("node-1"))
    answer = await enroller.enrol(token, "node-1")
    assert answer.ca_pem == enroller.trusted
    assert 0 < answer.renew_after_seconds < 24 * 3600
    credentials = grpc.ssl_channel_credentials(answer.ca_pem, key_pem(KEY), answer.certificate_pem)
    agent = ScriptedAgent(channel(fleet.agent_port, credentials))
    await agent.say(hello("node-1"))
    await agent.expect("welcome")
    await agent.close()
    assert counts.by_name["enrolled", "Issued"] == 1


async def test_a_token_for_another_audience_is_refused_and_counted(
    enroller: Enroller, counts: Counts
) -> None:
    token = enroller.token(enroller.pod("node-1"), audience="vault")
    code, text = await enroller.refusal(token, "node-1")
    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert "audience" in text
    assert counts.by_name["enrolled", "TokenRefused"] == 1


async def test_a_certificate_for_another_node_is_not_given(enroller: Enroller, counts: Counts) -> None:
    code, text = await enroller.refusal(enroller.token(enroller.pod("node-1")), "node-2")
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert "node-1" in text
    assert "node-2" in text
    assert counts.by_name["enrolled", "WrongNode"] == 1


async def test_a_pod_on_a_known_node_is_enrolled_by_the_tokens_own_claim(
    enroller: Enroller, control_plane: ControlPlane, namespace: str
) -> None:
    node = f"node-of-{namespace}"
    control_plane.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    token = enroller.token(enroller.pod(node))
    assert (await enroller.enrol(token, node)).certificate_pem
    code, _ = await enroller.refusal(token, "node-2")
    assert code is grpc.StatusCode.PERMISSION_DENIED


async def test_a_token_from_before_scheduling_is_good_for_the_node_the_pod_came_to(
    enroller: Enroller,
) -> None:
    pod = enroller.pod(node=None)
    token = enroller.token(pod)
    code, _ = await enroller.refusal(token, "node-1")
    assert code is grpc.StatusCode.PERMISSION_DENIED
    enroller.bind(pod, "node-1")
    assert (await enroller.enrol(token, "node-1")).certificate_pem


async def test_a_deleted_pod_enrols_no_more_even_while_its_review_is_remembered(
    enroller: Enroller, counts: Counts
) -> None:
    pod = enroller.pod("node-1")
    token = enroller.token(pod)
    await enroller.enrol(token, "node-1")
    enroller.delete(pod)
    code, text = await enroller.refusal(token, "node-1")
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert "does not exist any more" in text
    assert counts.by_name["enrolled", "PodGone"] == 1


async def test_a_pod_of_the_same_name_is_another_pod(enroller: Enroller) -> None:
    pod = enroller.pod("node-1")
    token = enroller.token(pod)
    await enroller.enrol(token, "node-1")
    enroller.delete(pod)
    enroller.pod("node-1")
    code, _ = await enroller.refusal(token, "node-1")
    assert code is grpc.StatusCode.PERMISSION_DENIED


async def test_another_service_account_is_refused(enroller: Enroller, counts: Counts) -> None:
    token = enroller.token(enroller.pod("node-1", "somebody"), account="somebody")
    code, text = await enroller.refusal(token, "node-1")
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert ":somebody" in text
    assert ":agent" in text
    assert counts.by_name["enrolled", "WrongServiceAccount"] == 1


async def test_a_token_that_is_bound_to_no_pod_is_refused(enroller: Enroller, counts: Counts) -> None:
    code, _ = await enroller.refusal(enroller.token(None), "node-1")
    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert counts.by_name["enrolled", "NotBoundToPod"] == 1


@pytest.mark.parametrize(
    ("token", "node", "csr", "named"),
    [
        ("", "node-1", REQUEST, "token"),
        ("t" * 20_000, "node-1", REQUEST, "token"),
        ("t", "", REQUEST, "node_name"),
        ("t", "Node_1", REQUEST, "node_name"),
        ("t", "node-1", b"", "csr_pem"),
        ("t", "node-1", b"x" * (MAX_CSR_BYTES + 1), "csr_pem"),
    ],
)
async def test_a_request_out_of_bounds_is_refused_by_the_name_of_its_field(
    token: str, node: str, csr: bytes, named: str, enroller: Enroller, counts: Counts
) -> None:
    code, text = await enroller.refusal(token, node, csr)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text.startswith(named)
    assert counts.by_name["enrolled", "BadRequest"] == 1


async def test_a_request_too_long_for_any_use_is_not_even_read(enroller: Enroller, counts: Counts) -> None:
    code, _ = await enroller.refusal("t", "node-1", b"x" * 100_000)
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not counts.by_name


async def test_a_call_that_says_nothing_loses_its_place(enroller: Enroller, fleet: Fleet) -> None:
    opened = channel(fleet.enrolment_port, grpc.ssl_channel_credentials(enroller.trusted))
    call = opened.stream_unary(ENROLL, request_serializer=bytes, response_deserializer=bytes)(nothing())
    with pytest.raises(aio.AioRpcError) as ended:
        async with asyncio.timeout(2 * (ENROLMENT_CONNECTION_SECONDS + ENROLMENT_GRACE_SECONDS)):
            await call
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    await opened.close()


async def nothing() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


async def test_a_client_without_enrolment_cannot_reach_the_streams(enroller: Enroller, fleet: Fleet) -> None:
    agent = ScriptedAgent(channel(fleet.agent_port, grpc.ssl_channel_credentials(enroller.trusted)))
    assert (await agent.refusal())[0] is grpc.StatusCode.UNAVAILABLE
    await agent.close()
