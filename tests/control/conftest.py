"""The real API server for the operator's edges, straight and through a fault proxy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from devcluster.controlplane import ControlPlane
from kvpool.cluster.rest import Access, Rest
from kvpool.control.facts import Facts
from kvpool.control.metrics import OperatorMetrics
from tests.harness.faultproxy import FaultProxy


@pytest.fixture(scope="session")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """The worker's shared control plane, with kvpool's kinds and those of Gateway API."""
    control_plane.install_crds()
    control_plane.install_gateway_api()
    return control_plane


@pytest.fixture
def proxy(plane: ControlPlane) -> Iterator[FaultProxy]:
    """A fault proxy in front of the shared control plane; it also tells what was asked."""
    with FaultProxy(plane.credentials) as running:
        yield running


@pytest.fixture
async def rest(proxy: FaultProxy, tmp_path: Path) -> AsyncIterator[Rest]:
    """The administrator's client, through the fault proxy."""
    client = await Rest.connect(Access(kubeconfig=proxy.kubeconfig(tmp_path / "proxy.kubeconfig")))
    yield client
    await client.close()


@pytest.fixture
def metrics() -> OperatorMetrics:
    """Metrics of a registry of their own."""
    return OperatorMetrics(CollectorRegistry())


@pytest.fixture
def facts(metrics: OperatorMetrics) -> Facts:
    """Facts of which none is known yet."""
    return Facts(metrics)
