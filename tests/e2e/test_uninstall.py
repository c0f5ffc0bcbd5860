"""`helm uninstall` alone leaves all memory serving; with `uninstall --drain` before it, nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.neighbours.pods import DEVICES_FILE, EnginePod
from devcluster.rest import JsonObject
from tests.e2e.conftest import NODES, POOL, declare
from tests.e2e.keepers import keepers_of
from tests.e2e.site import SSD_FOLDER, RealSite
from tests.e2e.stored import Stored
from tests.harness.leftovers import definitions, leftovers
from tests.harness.objects import KVPOOL, NAMESPACE
from tests.harness.waiting import wait_until

STATE_FOLDER = "/var/lib/kvpool"
SERVING = "kv-serving"
GONE_SECONDS = 60.0

pytestmark = pytest.mark.timeout(400)  # kvpool is installed anew after each test


@pytest.fixture
def leaving(site: RealSite) -> Iterator[RealSite]:
    """The site, which has kvpool and its pool again afterwards."""
    yield site
    if not site.pods_of("operator"):
        if "kvpool" in site.helm("list", "--short", wait=False).split():
            site.uninstall()
        site.install()
    declare(site)


def runs_nowhere(site: RealSite) -> bool:
    """Whether no operator and no agent has a Pod."""
    return not site.pods_of("operator") and not site.pods_of("agent")


def files(site: RealSite, node: str) -> list[str]:
    """What is left on a node in the folders that agents and keepers write to."""
    root = site.cluster.root(node)
    folders = [root / folder.lstrip("/") for folder in (STATE_FOLDER, SSD_FOLDER)]
    found = [path for folder in folders for path in folder.rglob("*")]
    found += (root / "dev/shm").glob("kvpool*")
    own = root / DEVICES_FILE.lstrip("/")
    return [str(path.relative_to(root)) for path in found if path != own]


def mounts(site: RealSite, node: str) -> list[str]:
    """What is mounted for units in the node's own view."""
    lines = site.cluster.run(node, ["cat", "/proc/mounts"]).stdout.splitlines()
    return [line for line in lines if f" {STATE_FOLDER}/units/" in line]


@pytest.fixture
def engine(leaving: RealSite) -> Iterator[EnginePod]:
    """An engine on a slot, whose Pod carries the label of a router output that outlives its group."""
    site, pod = leaving, EnginePod("leaving-a", "decode", "node3")
    site.admin.create(pod.manifest(NAMESPACE))
    decode = {"podSelector": {"matchLabels": {"role": "decode"}}, "port": pod.port, "instances": 1}
    output = {"name": "labels", "type": "PodLabel", "podLabel": {"key": SERVING}}
    spec = {"mode": "Enforce", "poolRef": {"name": POOL}, "decode": decode, "routing": {"outputs": [output]}}
    site.apply("PDGroup", "leaving", spec, NAMESPACE)
    wait_until(lambda: SERVING in pod_of(site, pod)["metadata"]["labels"], GONE_SECONDS, "the label")
    yield pod
    site.admin.delete("v1", "Pod", pod.name, NAMESPACE, {"gracePeriodSeconds": 0})


def pod_of(site: RealSite, engine: EnginePod) -> JsonObject:
    """The engine's Pod."""
    return site.admin.get("v1", "Pod", engine.name, NAMESPACE)


def test_helm_uninstall_leaves_memory_serving_and_a_new_install_takes_it_over(
    leaving: RealSite, stored: Stored
) -> None:
    site = leaving
    keepers, units, lives = keepers_of(site), site.generations(POOL), site.incarnations()
    segments = {segment.name for segment in site.store.segments()}
    site.uninstall()
    wait_until(lambda: runs_nowhere(site), GONE_SECONDS, "operators and agents to go")
    assert stored.lost() == []
    assert keepers_of(site) == keepers
    site.install()
    wait_until(
        lambda: all(number > lives[node] for node, number in site.incarnations().items()),
        GONE_SECONDS,
        "new agents to have reported",
    )
    site.wait_bound(POOL)
    assert keepers_of(site) == keepers
    assert site.generations(POOL) == units
    assert {segment.name for segment in site.store.segments()} == segments
    assert stored.lost() == []


def test_uninstall_with_drain_leaves_nothing_and_definitions_go_when_asked(
    leaving: RealSite, engine: EnginePod
) -> None:
    site = leaving
    pod = pod_of(site, engine)
    (slot,) = site.admin.list(KVPOOL, "EngineSlot", NAMESPACE)
    assert slot["spec"]["seats"]
    assert slot["metadata"]["finalizers"]
    assert all(files(site, node) and mounts(site, node) for node in site.nodes)
    assert len(site.store.segments()) == 2 * NODES

    told = site.kvpool("uninstall", "--drain", "--yes", "--timeout=90s")
    assert "helm uninstall kvpool -n kvpool-system" in told
    for node in site.nodes:
        assert files(site, node) == []
        assert mounts(site, node) == []
    assert site.store.segments() == ()
    after = pod_of(site, engine)
    assert after["metadata"]["uid"] == pod["metadata"]["uid"], "the engine is others' and goes on"
    assert SERVING not in after["metadata"]["labels"]

    site.uninstall()
    wait_until(lambda: not leftovers(site.admin), GONE_SECONDS, "the release to go")
    for node in site.nodes:
        assert files(site, node) == [], "nothing came back as Pods ended"
    assert len(definitions(site.admin)) == 7
    site.kvpool("uninstall", "--drain", "--yes", "--crds", "--timeout=30s")
    wait_until(lambda: not definitions(site.admin), GONE_SECONDS, "the definitions to go")
