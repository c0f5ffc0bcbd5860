"""One cluster of three real nodes for all tests here, with kvpool installed and a pool bound."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.images.archive import built
from devcluster.nodes.cluster import RealCluster
from devcluster.nodes.requirements import missing
from devcluster.nodes.settings import ClusterSettings
from devcluster.recipe import NotBuiltError
from tests.e2e.numbers import Numbers
from tests.e2e.site import NODES, RealSite
from tests.e2e.stored import Stored
from tests.harness.objects import KVPOOL, NAMESPACE
from tests.harness.planes import new_namespace

POOL = "chat"
PSA_LEVEL = "pod-security.kubernetes.io/enforce"

INSTALLED, BOUND = "helm install --wait to operators Ready", "after that, a pool of three units Bound"
NUMBERS = pytest.StashKey[Numbers]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[NUMBERS] = Numbers()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    config.stash[NUMBERS].report(terminalreporter)


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
def numbers(pytestconfig: pytest.Config) -> Numbers:
    """What is measured; printed in the end."""
    return pytestconfig.stash[NUMBERS]


@pytest.fixture(scope="session")
def installed(cluster: RealCluster, numbers: Numbers) -> RealSite:
    """kvpool by `helm install --wait`, and a pool of one unit a node."""
    site = RealSite(cluster)
    site.prepare()
    numbers.seconds[INSTALLED] = site.install()
    began = time.monotonic()
    declare(site)
    numbers.seconds[BOUND] = time.monotonic() - began
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
    """The same, and sound: all three nodes run and are Ready, kvpool is installed, the pool is bound."""
    installed.mend()
    if not installed.is_installed():
        installed.install()
    if not installed.admin.find(KVPOOL, "KVPool", POOL, NAMESPACE):
        declare(installed)
    installed.wait_bound(POOL)
    return installed


@pytest.fixture
def stored(site: RealSite, numbers: Numbers, request: pytest.FixtureRequest) -> Iterator[Stored]:
    """Blocks in the store, counted before; `lost()` reads them all again."""
    with Stored.put(site.master, site.store) as blocks:
        yield blocks
        if blocks.last_lost is not None:
            numbers.lost[request.node.name] = (len(blocks.last_lost), len(blocks.keys))


@pytest.fixture(scope="module")
def restricted(installed: RealSite) -> Iterator[str]:
    """A namespace that enforces level `restricted`, with the accounts of kvpool's Pods."""
    name = new_namespace(installed.cluster.plane, "restricted")
    admin = installed.admin
    try:
        admin.patch("v1", "Namespace", name, {"metadata": {"labels": {PSA_LEVEL: "restricted"}}})
        for component in ("operator", "agent", "keeper"):
            metadata = {"name": f"kvpool-{component}", "namespace": name}
            admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        yield name
    finally:
        admin.delete("v1", "Namespace", name)
