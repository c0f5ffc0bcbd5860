"""One cluster of three real nodes for all tests here, with kvpool installed and a pool bound."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcluster.images.archive import built
from devcluster.nodes.cluster import RealCluster
from devcluster.nodes.requirements import missing
from devcluster.nodes.settings import ClusterSettings
from devcluster.recipe import NotBuiltError
from tests.e2e.site import RealSite
from tests.e2e.stored import Stored

NODES = 3
POOL = "chat"
UNIT = "64Mi"


@dataclass
class Timings:
    """Seconds that a person waits."""

    install: float = 0.0
    bound: float = 0.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/e2e/" in item.nodeid or item.path.parent.name == "e2e":
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def cluster() -> Iterator[RealCluster]:
    """Three Ready nodes that have the project's images."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    try:
        images = built()
    except NotBuiltError as error:
        pytest.skip(str(error))
    labels = {f"node{index}": _labels(index) for index in range(1, NODES + 1)}
    settings = ClusterSettings(images=[images], labels=labels)
    with (
        tempfile.TemporaryDirectory(prefix="kvpool-e2e-") as folder,
        RealCluster(Path(folder), NODES, settings) as started,
    ):
        yield started


def _labels(index: int) -> dict[str, str]:
    rack = f"rack-{(index + 1) // 2}"
    return {"pool": "gpu", "kvpool.dev/board": f"board-{index}", "kvpool.dev/rack": rack}


@pytest.fixture(scope="session")
def timings() -> Timings:
    """How long installing and binding took."""
    return Timings()


@pytest.fixture(scope="session")
def installed(cluster: RealCluster, timings: Timings) -> RealSite:
    """kvpool by `helm install --wait`, and a pool of one unit a node."""
    site = RealSite(cluster)
    site.prepare()
    timings.install = site.install()
    began = time.monotonic()
    declare(site)
    timings.bound = time.monotonic() - began
    return site


def declare(site: RealSite) -> None:
    """What people declare, and wait until it is bound."""
    site.budget()
    site.apply("Supernode", "sn-a", SUPERNODE)
    site.pool(POOL, DRAM="192Mi", SSD="96Mi")
    site.wait_bound(POOL)


SUPERNODE = {
    "mode": "Enforce",
    "nodeSelector": {"matchLabels": {"pool": "gpu"}},
    "domains": ["kvpool.dev/board", "kvpool.dev/rack"],
    "spares": {"floor": 0},
    # An accelerator that a test broke and mended is to be of use to the next one.
    "failover": {"evidence": {"healthyDelay": "5s"}},
}


@pytest.fixture
def site(installed: RealSite) -> RealSite:
    """The same, and sound: every node Ready, the pool bound."""
    installed.cluster.wait_ready()
    installed.wait_bound(POOL)
    return installed


@pytest.fixture
def stored(site: RealSite) -> Iterator[Stored]:
    """Blocks in the store, counted before; `lost()` reads them all again."""
    with Stored.put(site.master, site.store) as blocks:
        yield blocks
