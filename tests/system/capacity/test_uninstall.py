"""`uninstall --drain` and `helm uninstall`: nothing is left of units, segments, files and objects."""

from __future__ import annotations

import pytest

from kvpool.api import labels
from tests.harness.leftovers import definitions, leftovers
from tests.harness.objects import KVPOOL, NAMESPACE
from tests.harness.waiting import wait_until
from tests.system.capacity.site import HOST_FOLDER, SSD_FOLDER, Site, SiteFactory

pytestmark = [
    pytest.mark.real,
    pytest.mark.memory,
    pytest.mark.mooncake,
    pytest.mark.xdist_group("uninstall"),
]

STEP_SECONDS = 40.0
PEOPLES_OWN = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "peoples-own",
        "namespace": NAMESPACE,
        "labels": {labels.MANAGED_BY: labels.MANAGER, labels.PDGROUP: "chat"},
    },
    "spec": {"ports": [{"port": 80}]},
}
"""Labelled as kvpool labels its own."""


@pytest.fixture
def site(make_site: SiteFactory) -> Site:
    """Units of memory and disk with objects in the store, and a bound slot."""
    site = make_site(hosts=2)
    site.budget()
    site.pool("chat", DRAM="128Mi", SSD="64Mi")
    site.wait_bound("chat")
    site.apply("Supernode", "sn-a", {"mode": "Enforce", "nodeSelector": {"matchLabels": {"pool": "gpu"}}})
    engines = {"podSelector": {"matchLabels": {"app": "decode"}}}
    warm = {**engines, "readiness": "Device"}
    decode = {**engines, "instances": 1, "attach": "Standby", "standby": warm}
    site.apply(
        "PDGroup", "chat", {"mode": "Enforce", "poolRef": {"name": "chat"}, "decode": decode}, NAMESPACE
    )
    wait_until(lambda: seated(site), STEP_SECONDS, "a slot with a seat")
    return site


def seated(site: Site) -> bool:
    return any(slot["spec"].get("seats") for slot in site.admin.list(KVPOOL, "EngineSlot", NAMESPACE))


def files(site: Site, node: str) -> list[str]:
    """What is in the agent's folder and in the folder for SSD units, but for the test's own file."""
    host = site.hosts[node].files
    return [
        str(path.relative_to(host.seen("/mnt")))
        for folder in (HOST_FOLDER, SSD_FOLDER)
        for path in host.seen(folder).rglob("*")
        if path.name != "devices.json"
    ]


def mounts(site: Site, node: str) -> list[str]:
    """What is mounted below the agent's folder."""
    lines = site.hosts[node].files.mounts().splitlines()
    return [line for line in lines if line.split()[1].startswith(f"{HOST_FOLDER}/")]


def release_objects(site: Site) -> list[str]:
    """What is there when the release alone is left."""
    found = leftovers(site.admin)
    return [one for one in found if "Helm" not in one or one.startswith("Pod ")]


def test_nothing_is_left_of_kvpool_and_its_definitions_stay_unless_asked(site: Site) -> None:
    assert all(files(site, node) and mounts(site, node) for node in site.nodes)
    assert len(site.mooncake.admin.segments()) == 4
    site.admin.create(PEOPLES_OWN)
    dry = site.uninstall()
    assert dry.returncode == 0
    assert "Nothing was changed" in dry.stdout
    assert site.condition("chat", "Bound")["status"] == "True"

    done = site.uninstall("--yes", "--timeout=120s")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"helm uninstall kvpool -n {site.installed.namespace}" in done.stdout
    for node in site.nodes:
        assert files(site, node) == []
        assert mounts(site, node) == []
    assert site.mooncake.admin.segments() == ()
    site.admin.delete("v1", "Service", "peoples-own", NAMESPACE)  # which shows that it was left alone
    assert release_objects(site) == []
    again = site.uninstall("--yes", "--timeout=20s")
    assert again.returncode == 0, again.stderr

    site.installed.helm("uninstall", "kvpool")
    wait_until(lambda: not leftovers(site.admin), STEP_SECONDS, "the release to go")
    assert len(definitions(site.admin)) == 7
    assert site.uninstall("--yes", "--crds", "--timeout=20s").returncode == 0
    wait_until(lambda: not definitions(site.admin), STEP_SECONDS, "the definitions to go")
