"""What happens to machines: rebooted, cut off, cut off from the control plane alone, and gone for good."""

from __future__ import annotations

import time

from tests.e2e.conftest import POOL
from tests.e2e.keepers import keepers_of
from tests.e2e.site import RealSite
from tests.e2e.stored import Stored
from tests.harness.objects import SETTLE_SECONDS
from tests.harness.waiting import wait_until

PARTITION_SECONDS = 20.0
"""Longer than a node's grace (8 s) and an agent's lease (10 s + 1 s)."""


def test_a_rebooted_node_loses_its_memory_says_so_and_keeps_its_disk(site: RealSite, stored: Stored) -> None:
    memory, disk = site.unit("node3", POOL), site.unit("node3", POOL, "SSD")
    before = site.boot_id_known("node3")
    site.cluster.power_cut("node3")
    site.cluster.start_node("node3")
    site.equip("node3")
    site.cluster.wait_ready(["node3"])
    wait_until(lambda: site.boot_id_known("node3") != before, SETTLE_SECONDS, "kvpool to see the new boot")
    wait_until(
        lambda: site.unit("node3", POOL)["generation"] > memory["generation"],
        SETTLE_SECONDS,
        "the memory to be decided anew",
    )
    site.wait_bound(POOL)
    assert site.unit("node3", POOL, "SSD")["generation"] == disk["generation"]
    assert site.said_of(memory["name"], "UnitLost"), "the loss is an event"
    assert site.event_of("Node", "node3", "Rebooted")
    elsewhere = [key for key in stored.keys if key not in stored.lost()]
    assert elsewhere, "blocks of the other nodes stay"


def test_a_node_that_is_cut_off_keeps_its_units_and_what_is_in_them(site: RealSite, stored: Stored) -> None:
    keepers, units = keepers_of(site), site.generations(POOL)
    site.cluster.partition("node2")
    try:
        site.cluster.wait_not_ready("node2")
        time.sleep(PARTITION_SECONDS)  # the fault has to last; nothing can be waited for but its end
        assert site.generations(POOL) == units
        assert site.condition(POOL, "Bound")["status"] == "Unknown"
    finally:
        site.cluster.heal("node2")
    site.cluster.wait_ready(["node2"])
    site.wait_bound(POOL)
    assert stored.lost() == []
    assert keepers_of(site) == keepers
    assert site.generations(POOL) == units


def test_a_node_without_its_api_server_serves_on_and_nothing_moves(site: RealSite, stored: Stored) -> None:
    keepers, units = keepers_of(site), site.generations(POOL)
    site.cluster.partition_from_api("node2")
    try:
        site.cluster.wait_not_ready("node2")
        end = time.monotonic() + PARTITION_SECONDS
        while time.monotonic() < end:
            assert stored.lost() == []
        assert site.generations(POOL) == units
        assert site.condition(POOL, "Bound")["status"] == "True", "its agent still reports"
    finally:
        site.cluster.heal("node2")
    site.cluster.wait_ready(["node2"])
    site.wait_bound(POOL)
    assert stored.lost() == []
    assert keepers_of(site) == keepers
