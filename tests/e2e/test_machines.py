"""What happens to machines: rebooted, cut off, cut off from the control plane alone."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from demo.neighbours import pods
from tests.e2e.conftest import POOL
from tests.e2e.keepers import disk_keeper, keepers_of, memory_keeper
from tests.e2e.kernel import mappings
from tests.e2e.short_patience import ShortPatience
from tests.e2e.site import SSD_FOLDER, RealSite
from tests.e2e.stored import Stored
from tests.harness.objects import KVPOOL, SETTLE_SECONDS
from tests.harness.waiting import wait_until

PARTITION_SECONDS = 20.0
"""Longer than a node's grace (8 s), an agent's lease (10 s + 1 s) and Mooncake's own client_ttl (10 s)."""
SHORT_CUT_SECONDS = 5.0
"""Shorter than that client_ttl."""


def test_a_rebooted_node_loses_its_memory_says_so_and_keeps_its_disk(site: RealSite, stored: Stored) -> None:
    memory, disk = site.unit("node3", POOL), site.unit("node3", POOL, "SSD")
    before, since = site.boot_id_known("node3"), site.since()
    files = _ssd_files(site, "node3")
    there = stored.only_in(mappings(site, memory_keeper(site, "node3"), disk_keeper(site, "node3")))
    assert there
    with site.without_power("node3"):
        pass
    boot = site.cluster.boot_id("node3")
    assert boot != before
    wait_until(lambda: site.boot_id_known("node3") == boot, SETTLE_SECONDS, "kvpool to see the new boot")
    wait_until(
        lambda: site.unit("node3", POOL)["generation"] > memory["generation"],
        SETTLE_SECONDS,
        "the memory to be decided anew",
    )
    site.wait_reported("node3", site.unit("node3", POOL), "Bound")
    site.wait_bound(POOL)
    told = [
        (unit["generation"], unit["phase"])
        for version in since.versions(KVPOOL, "KVNode", "node3")
        for unit in version["status"]["units"]
        if unit["name"] == memory["name"]
    ]
    assert (memory["generation"], "Lost") in told, f"generation and phase, as reported: {told}"
    assert since.said_of(memory["name"], "UnitLost"), "the loss is an event"
    assert since.events_about("Node", "node3", "Rebooted")
    adopted = site.wait_reported("node3", disk, "Bound")
    assert adopted["residentBytes"] == disk["sizeBytes"]
    assert adopted["segment"] in {segment.name for segment in site.store.segments()}
    assert _ssd_files(site, "node3") == files, "the same file, adopted"
    assert stored.lost() == there, "what was on the node is gone, and nothing else"


def _ssd_files(site: RealSite, node: str) -> dict[str, tuple[int, int]]:
    """Inode and size of each file of SSD units, by its path."""
    root = site.cluster.root(node) / SSD_FOLDER.lstrip("/")
    found = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): (path.stat().st_ino, path.stat().st_size) for path in found}


@pytest.fixture
def impatient(site: RealSite) -> Iterator[ShortPatience]:
    """A second store, whose master has Mooncake's own client_ttl, and a pool in it."""
    with ShortPatience.beside(site, "node3") as second:
        yield second


def test_a_node_that_is_cut_off_keeps_its_units_and_what_is_in_them(
    site: RealSite, stored: Stored, impatient: ShortPatience
) -> None:
    keepers, units = keepers_of(site), site.generations(POOL) | site.generations(impatient.pool)
    with site.cut_off("node2"):
        time.sleep(SHORT_CUT_SECONDS)  # the fault has to last; nothing can be waited for but its end
    assert stored.lost() == set()
    assert impatient.stored.lost() == set(), "a cut that is shorter than client_ttl loses nothing"
    there = impatient.stored.only_in(mappings(site, memory_keeper(site, "node2", impatient.pool)))
    assert there
    unit = site.unit("node2", impatient.pool)["name"]
    wait_until(
        lambda: site.reported("node2", unit).get("usedBytes"),
        SETTLE_SECONDS,
        "the unit's keeper to have seen them: of what it never saw it cannot tell the loss",
    )
    since = site.since()
    with site.cut_off("node2"):
        site.cluster.wait_not_ready("node2")
        time.sleep(PARTITION_SECONDS)  # the same
        assert site.generations(POOL) | site.generations(impatient.pool) == units
        assert site.condition(POOL, "Bound")["status"] == "Unknown"
        assert site.condition(impatient.pool, "Bound")["status"] == "Unknown"
    site.wait_bound(POOL)
    site.wait_bound(impatient.pool)
    assert keepers_of(site) == keepers
    assert site.generations(POOL) | site.generations(impatient.pool) == units
    assert stored.lost() == set(), f"client_ttl is {pods.CLIENT_TTL_SECONDS} s, and nothing was forgotten"
    _assert_loss_is_said(site, impatient)
    assert impatient.stored.lost() == there, "forgotten is what was on the node that was cut off"
    assert not since.said_of(site.unit("node2", POOL)["name"], "StoreContentsLost")


def _assert_loss_is_said(site: RealSite, impatient: ShortPatience) -> None:
    unit = site.unit("node2", impatient.pool)

    def said() -> bool:
        findings = site.reported("node2", unit["name"])["findings"]
        return any(one["reason"] == "StoreContentsLost" for one in findings)

    wait_until(said, SETTLE_SECONDS, "the unit to say that its store forgot it")
    told = site.reported("node2", unit["name"])
    assert (told["phase"], told["residentBytes"]) == ("Bound", unit["sizeBytes"])
    site.wait_condition(impatient.pool, "StoreContentsLost=True", "node2")
    wait_until(
        lambda: told["segment"] in {one.name for one in impatient.stored.admin.segments()},
        SETTLE_SECONDS,
        "the segment to be mounted again",
    )


def test_a_node_without_its_api_server_serves_on_and_nothing_moves(site: RealSite, stored: Stored) -> None:
    keepers, units = keepers_of(site), site.generations(POOL)
    with site.cut_off("node2", from_api_alone=True):
        site.cluster.wait_not_ready("node2")
        end = time.monotonic() + PARTITION_SECONDS
        while time.monotonic() < end:
            assert stored.lost() == set()
        assert site.generations(POOL) == units
        assert site.condition(POOL, "Bound")["status"] == "True", "its agent still reports"
    site.wait_bound(POOL)
    assert stored.lost() == set()
    assert keepers_of(site) == keepers
