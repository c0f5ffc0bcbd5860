"""One authority for everybody, on the real API server."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from devcluster.controlplane import ControlPlane
from kvpool.cluster.rest import Access, Rest
from kvpool.control.agent_access import KubernetesAccess
from kvpool.fleet.ca import AuthorityError
from kvpool.fleet.ca_store import load_or_create, publish

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
async def access(control_plane: ControlPlane, namespace: str) -> AsyncIterator[KubernetesAccess]:
    rest = await Rest.connect(Access(kubeconfig=control_plane.kubeconfig))
    yield KubernetesAccess(rest, namespace)
    await rest.close()


async def test_replicas_that_start_together_end_with_one_authority(access: KubernetesAccess) -> None:
    made = await asyncio.gather(*(load_or_create(access, "kvpool-ca", NOW) for _ in range(8)))
    assert len({authority.certificate_pem for authority in made}) == 1


async def test_the_authority_survives_a_restart(access: KubernetesAccess) -> None:
    first = await load_or_create(access, "kvpool-ca", NOW)
    again = await load_or_create(access, "kvpool-ca", NOW)
    assert again.key_pem == first.key_pem


async def test_a_secret_that_cannot_be_used_is_named_and_left_alone(
    access: KubernetesAccess, control_plane: ControlPlane, namespace: str
) -> None:
    metadata = {"name": "kvpool-ca", "namespace": namespace}
    data = {"tls.key": b64encode(b"junk").decode(), "tls.crt": b64encode(b"junk").decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    stored = control_plane.admin.create({**secret, "type": "kubernetes.io/tls"})
    with pytest.raises(AuthorityError, match=r"Secret kvpool-ca .*restore it from a backup, or delete it"):
        await load_or_create(access, "kvpool-ca", NOW)
    now = control_plane.admin.call("GET", f"/api/v1/namespaces/{namespace}/secrets/kvpool-ca")
    assert now["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]


async def test_the_bundle_follows_the_authority_and_is_written_only_when_it_differs(
    access: KubernetesAccess, control_plane: ControlPlane, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/kvpool-ca"
    first = await load_or_create(access, "ca-one", NOW)
    await asyncio.gather(*(publish(access, "kvpool-ca", first) for _ in range(4)))
    written = control_plane.admin.call("GET", path)
    assert written["data"] == {"ca.crt": first.certificate_pem.decode()}
    await publish(access, "kvpool-ca", first)
    unchanged = control_plane.admin.call("GET", path)
    assert unchanged["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]
    second = await load_or_create(access, "ca-two", NOW)
    await publish(access, "kvpool-ca", second)
    assert control_plane.admin.call("GET", path)["data"] == {"ca.crt": second.certificate_pem.decode()}
