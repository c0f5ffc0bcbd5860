"""`helm uninstall` alone leaves all memory serving; with `uninstall --drain` before it, nothing is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.neighbours.pods import DEVICES_FILE
from devcluster.rest import JsonObject
from kvpool.api.labels import UNINSTALL_CONFIG_MAP
from tests.e2e.conftest import POOL
from tests.e2e.keepers import keepers_of
from tests.e2e.routed import engine_behind_gateway, group
from tests.e2e.site import NODES, SSD_FOLDER, SYSTEM, RealSite
from tests.e2e.stored import Stored
from tests.harness.leftovers import definitions, leftovers
from tests.harness.objects import KVPOOL, NAMESPACE
from tests.harness.rights import used
from tests.harness.waiting import wait_until

STATE_FOLDER = "/var/lib/kvpool"
SERVING = "kv-serving"
NAME = "leaving"
PARKED = "kvpool.dev/uninstalled"
"""In the node selector of agents that an uninstall with --drain has stopped."""
GONE_SECONDS = 120.0
"""Garbage collection stands still for half a minute after a definition went, as with a test before."""

pytestmark = pytest.mark.timeout(400)  # kvpool is installed anew after each test


@pytest.fixture
def leaving(site: RealSite) -> Iterator[RealSite]:
    """The site; what is gone of kvpool afterwards comes back with the next test that needs it."""
    yield site
    site.admin.delete("v1", "ConfigMap", UNINSTALL_CONFIG_MAP, SYSTEM)
    agents = site.admin.find("apps/v1", "DaemonSet", "kvpool-agent", SYSTEM)
    if agents and PARKED in agents["spec"]["template"]["spec"].get("nodeSelector", {}):
        site.uninstall()  # it went half the way


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
def routed(leaving: RealSite) -> Iterator[RealSite]:
    """An engine on a slot, whose weights went to a route and a label that outlive their group."""
    site = leaving
    with engine_behind_gateway(site, NAME, "node3"):
        spec = group(POOL, role=NAME, label=SERVING, gateway_name=NAME)
        site.apply("PDGroup", NAME, spec, NAMESPACE)
        expected = {
            f"HTTPRoute {NAMESPACE}/{NAME}-edge",
            f"Pod {NAMESPACE}/{NAME}",
            "Service",
            "EndpointSlice",
            "EngineSlot",
        }
        wait_until(
            lambda: all(any(one.startswith(what) for one in in_use(site)) for what in expected),
            GONE_SECONDS,
            "every kind of output to be written",
        )
        yield site


def in_use(site: RealSite) -> list[str]:
    """What there is of kvpool's beside its own release."""
    return [one for one in leftovers(site.admin, gateway=True) if f" {SYSTEM}/kvpool-operator" not in one]


def segments_of_units(site: RealSite) -> set[str]:
    """Segments of the pool's units; the store may have others for a while, of keepers that are gone."""
    return {
        str(site.reported(node, unit)["segment"]) for node in site.nodes for unit in site.decided(node, POOL)
    }


def engine_pod(site: RealSite) -> JsonObject:
    return site.admin.get("v1", "Pod", NAME, NAMESPACE)


def node_marks(site: RealSite) -> dict[str, tuple[JsonObject, list[JsonObject]]]:
    """Labels and taints of each Node."""
    return {
        node["metadata"]["name"]: (node["metadata"]["labels"], node["spec"].get("taints", []))
        for node in site.admin.list("v1", "Node")
    }


def test_helm_uninstall_leaves_memory_serving_and_a_new_install_takes_it_over(
    leaving: RealSite, stored: Stored
) -> None:
    site = leaving
    keepers, units, lives = keepers_of(site), site.generations(POOL), site.incarnations()
    segments = segments_of_units(site)
    site.uninstall()
    wait_until(lambda: runs_nowhere(site), GONE_SECONDS, "operators and agents to go")
    assert stored.lost() == set()
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
    assert segments_of_units(site) == segments <= {segment.name for segment in site.store.segments()}
    assert stored.lost() == set()


def test_uninstall_with_drain_leaves_nothing_and_definitions_go_when_asked(routed: RealSite) -> None:
    site = routed
    pod, marks = engine_pod(site), node_marks(site)
    assert SERVING in pod["metadata"]["labels"]
    (slot,) = site.admin.list(KVPOOL, "EngineSlot", NAMESPACE)
    assert slot["spec"]["seats"]
    assert slot["metadata"]["finalizers"]
    assert all(files(site, node) and mounts(site, node) for node in site.nodes)
    assert len(segments_of_units(site)) == 2 * NODES

    told = site.kvpool("uninstall", "--drain", "--yes", "--timeout=90s")
    assert "helm uninstall kvpool -n kvpool-system" in told
    for node in site.nodes:
        assert files(site, node) == []
        assert mounts(site, node) == []
    wait_until(lambda: not site.store.segments(), GONE_SECONDS, "every segment to go, dead keepers' too")
    after = engine_pod(site)
    assert after["metadata"]["uid"] == pod["metadata"]["uid"], "the engine is others' and goes on"
    assert SERVING not in after["metadata"]["labels"]
    user = f"system:serviceaccount:{SYSTEM}:kvpool-operator"
    asked = site.cluster.plane.audit.requests(user=user)
    assert ("", "configmaps", "patch") in used(asked), "it wrote which agents keep nothing any more"

    site.uninstall()
    wait_until(lambda: not leftovers(site.admin, gateway=True), GONE_SECONDS, "the release to go")
    assert node_marks(site) == marks
    for node in site.nodes:
        assert files(site, node) == [], "nothing came back as Pods ended"
    assert len(definitions(site.admin)) == 7
    site.kvpool("uninstall", "--drain", "--yes", "--crds", "--timeout=30s")
    wait_until(lambda: not definitions(site.admin), GONE_SECONDS, "the definitions to go")
