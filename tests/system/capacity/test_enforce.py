"""A pool from its manifest to segments of a real Mooncake master: kernel, master and status agree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.neighbours.store import join_store
from devcluster.ports import free_port
from tests.harness.objects import MIB, STATES
from tests.harness.waiting import wait_until
from tests.system.capacity.resident import resident_bytes
from tests.system.capacity.site import Site, SiteFactory

pytestmark = [pytest.mark.real, pytest.mark.memory, pytest.mark.mooncake, pytest.mark.xdist_group("enforce")]

BLOCK = b"k" * 65536
BLOCKS = 256


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    site = make_site(hosts=2)
    site.budget()
    return site


@pytest.fixture(scope="module")
def pool(site: Site) -> Iterator[str]:
    """64 MiB of memory and 32 MiB of disk on each of two nodes."""
    with site.bound_pool(DRAM="128Mi", SSD="64Mi") as name:
        yield name


def test_every_unit_is_allocated_prefaulted_and_in_a_mount_of_its_size(site: Site, pool: str) -> None:
    for node in site.nodes:
        unit = site.unit(node, pool)
        file = site.segment_file(node, unit).stat()
        assert file.st_size == file.st_blocks * 512 == 64 * MIB
        mounts = [line.split() for line in site.hosts[node].files.mounts().splitlines()]
        (mount,) = [words for words in mounts if words[0] == f"kvpool-{unit['name']}-g1"]
        assert mount[2] == "tmpfs"
        assert {f"size={64 * 1024}k", "mpol=bind:0"} <= set(mount[3].split(","))


def test_a_disk_unit_is_a_fallocated_file_in_the_folder_of_its_budget(site: Site, pool: str) -> None:
    for node in site.nodes:
        file = site.segment_file(node, site.unit(node, pool, "SSD")).stat()
        assert file.st_size == 32 * MIB <= file.st_blocks * 512 <= 33 * MIB


def test_every_unit_is_a_segment_of_the_same_master(site: Site, pool: str) -> None:
    segments = {segment.name: segment for segment in site.mooncake.admin.segments()}
    for node in site.nodes:
        for tier, size in (("DRAM", 64 * MIB), ("SSD", 32 * MIB)):
            unit = site.unit(node, pool, tier)
            segment = segments[site.reported(node, unit["name"])["segment"]]
            assert segment.statuses == ("OK",)
            assert segment.capacity_bytes == size
            assert segment.name.startswith(f"{site.hosts[node].address}:")


def test_used_bytes_rise_with_puts_and_kernel_master_and_status_agree(site: Site, pool: str) -> None:
    store = join_store(
        local_name=f"{site.hosts['infra-0'].address}:{free_port()}",
        master=site.mooncake.endpoint,
        segment_bytes=0,
        buffer_bytes=16 * MIB,
    )
    try:
        for index in range(BLOCKS):
            assert store.put(f"block-{index}", BLOCK) == 0
        put_bytes = BLOCKS * len(BLOCK)

        def told() -> int:
            return sum(site.figures(pool, tier)["used"] for tier in ("DRAM", "SSD"))

        wait_until(lambda: abs(told() - put_bytes) <= put_bytes // 100, 30, f"{put_bytes} bytes in use")
        ours = site.mooncake.admin.segments()
        assert sum(segment.used_bytes for segment in ours) == pytest.approx(told(), rel=0.01)
        for tier in ("DRAM", "SSD"):
            figures = site.figures(pool, tier)
            assert figures["declared"] >= figures["admitted"] >= figures["bound"] >= figures["used"] > 0
            files = [site.segment_file(node, site.unit(node, pool, tier)) for node in site.nodes]
            kernel = sum(file.stat().st_blocks * 512 for file in files)
            assert kernel == pytest.approx(figures["bound"], rel=0.01)
            assert figures["foreign"] == figures["unknown"] == 0
        assert site.metric("operator", "kvpool_pool_bytes").keys() == {
            f'{{namespace="inference",pool="{pool}",state="{state}",tier="{tier}"}}'
            for tier in ("DRAM", "SSD")
            for state in STATES
        }
    finally:
        store.remove_all(True)
        store.close()


def test_the_figures_of_a_quiet_pool_stay_in_the_metrics(site: Site, pool: str) -> None:
    begun = site.capacity_steps()
    seen: list[dict[str, float]] = []

    def planned() -> bool:
        seen.append(site.metric("operator", "kvpool_pool_bytes"))
        return site.capacity_steps() >= begun + 4

    wait_until(planned, 60, "four more capacity steps")
    assert all(f'{{namespace="inference",pool="{pool}",state="bound",tier="DRAM"}}' in one for one in seen)


def test_processes_stay_within_their_memory(site: Site, pool: str) -> None:
    assert resident_bytes(site.installed.process("operator")) <= 250e6
    for node in site.nodes:
        assert resident_bytes(site.installed.process("agent", node)) <= 120e6
        assert resident_bytes(site.keeper(node, pool), without_shared=True) <= 150e6
