"""Fixtures for the edge to the API: clients of the real server, straight and through a fault proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from devcluster.controlplane import ControlPlane
from kvpool.cluster.rest import Access, RequestRecord, Rest
from tests.harness.faultproxy import FaultProxy


@pytest.fixture
def records() -> list[RequestRecord]:
    """What the request hook of `rest` and `through_proxy` was told."""
    return []


@pytest.fixture
async def rest(control_plane: ControlPlane, records: list[RequestRecord]) -> AsyncIterator[Rest]:
    """The administrator's client, straight to the API server."""
    client = await Rest.connect(Access(kubeconfig=control_plane.kubeconfig), hook=records.append)
    yield client
    await client.close()


@pytest.fixture
def proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    """A fault proxy in front of the shared control plane."""
    with FaultProxy(control_plane.credentials) as running:
        yield running


@pytest.fixture
async def through_proxy(
    proxy: FaultProxy, tmp_path: Path, records: list[RequestRecord]
) -> AsyncIterator[Rest]:
    """The administrator's client, through the fault proxy."""
    client = await Rest.connect(
        Access(kubeconfig=proxy.kubeconfig(tmp_path / "proxy.kubeconfig")), hook=records.append
    )
    yield client
    await client.close()


@pytest.fixture
def fixed_backoff() -> Callable[[int], float]:
    """A backoff without jitter, short enough for tests."""
    return lambda failures: min(0.05 * failures, 0.5)
