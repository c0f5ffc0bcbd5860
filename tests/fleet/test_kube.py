"""What the agent channel asks the real API server, and what it does not have to ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from devcluster.controlplane import ControlPlane
from kvpool.cluster.rest import Access, RequestRecord, Rest
from kvpool.control.agent_access import KubernetesAccess
from kvpool.fleet.access import PodPlace, UnavailableError
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import PodFact


@pytest.fixture
def requests() -> list[RequestRecord]:
    return []


@pytest.fixture
async def rest(control_plane: ControlPlane, requests: list[RequestRecord]) -> AsyncIterator[Rest]:
    client = await Rest.connect(Access(kubeconfig=control_plane.kubeconfig), hook=requests.append)
    yield client
    await client.close()


def fact(key: ObjectKey, uid: str, *, deleting: bool = False) -> PodFact:
    return PodFact(
        key, uid, {}, "node-1", "", "Running", ready=True, deleting=deleting, memory_request_bytes=0
    )


async def test_a_pod_that_the_operator_watches_is_not_asked_for(
    rest: Rest, requests: list[RequestRecord], namespace: str
) -> None:
    key = ObjectKey(namespace, "agent")
    access = KubernetesAccess(rest, namespace, {key: fact(key, "uid-a")}.get)
    assert await access.find_pod(key, "uid-a") == PodPlace("node-1")
    assert requests == []


async def test_a_pod_that_is_going_or_is_another_one_is_asked_for(rest: Rest, namespace: str) -> None:
    key = ObjectKey(namespace, "agent")
    going = KubernetesAccess(rest, namespace, {key: fact(key, "uid-a", deleting=True)}.get)
    assert await going.find_pod(key, "uid-a") is None
    another = KubernetesAccess(rest, namespace, {key: fact(key, "uid-b")}.get)
    assert await another.find_pod(key, "uid-a") is None


async def test_a_pod_that_the_operator_has_not_seen_yet_is_found(
    rest: Rest, control_plane: ControlPlane, namespace: str
) -> None:
    metadata = {"name": "agent", "namespace": namespace}
    spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": "node-2"}
    made = control_plane.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    access = KubernetesAccess(rest, namespace, lambda _key: None)
    assert await access.find_pod(ObjectKey(namespace, "agent"), made["metadata"]["uid"]) == PodPlace("node-2")


async def test_what_the_operator_may_not_do_is_named(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "default", tmp_path / "kubeconfig")
    rest = await Rest.connect(Access(kubeconfig=kubeconfig))
    access = KubernetesAccess(rest, namespace)
    with pytest.raises(UnavailableError, match=r"tokenreviews\.authentication\.k8s\.io.*403 Forbidden"):
        await access.review_token("token", "kvpool")
    with pytest.raises(UnavailableError, match=r"secrets .*kvpool-ca.*403 Forbidden"):
        await access.read_secret("kvpool-ca")
    await rest.close()
