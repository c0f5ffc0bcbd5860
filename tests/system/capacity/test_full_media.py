"""Media that fill up before the bind, and places that somebody else has: said, counted, nothing lost."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.hosts import SimulatedHost
from tests.harness.objects import MIB
from tests.harness.waiting import wait_until
from tests.system.capacity.site import SSD_FOLDER, Site, SiteFactory

pytestmark = [pytest.mark.real, pytest.mark.memory, pytest.mark.xdist_group("full-media")]

NODE = "node-1"
ONE_NODE = {"matchLabels": {"kubernetes.io/hostname": NODE}}
SHARED_MEMORY = "/mnt/shared-memory"
MEDIUM_BYTES = 128 * MIB
RETRY_SECONDS = 60.0


EXTRA = ("--tmpfs=shm", f"--shared-memory={SHARED_MEMORY}")


def mount_small_media(host: SimulatedHost) -> None:
    """Make disk and shared memory small filesystems of their own, seen by the host alone."""
    for place in (SSD_FOLDER, SHARED_MEMORY):
        host.files.outer(place).mkdir(parents=True, exist_ok=True)
        words = ["mount", "-t", "tmpfs", "-o", f"size={MEDIUM_BYTES}", "small", place]
        subprocess.run(host.files.command(words), check=True, timeout=10)


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    """One node, whose agent may not mount."""
    arguments = {f"agent.extraArgs[{n}]": word for n, word in enumerate(EXTRA, start=2)}
    site = make_site(hosts=1, store=False, prepare=mount_small_media, **arguments)
    site.budget(
        {"name": "DRAM", "perNode": "256Mi", "reserve": "0"},
        {"name": "SSD", "perNode": "256Mi", "reserve": "0", "path": SSD_FOLDER},
    )
    return site


def place_of(site: Site, tier: str) -> Path:
    return site.hosts[NODE].files.seen(SSD_FOLDER if tier == "SSD" else SHARED_MEMORY)


def fill_during_bind(site: Site, pool: str, tier: str) -> Callable[[], None]:
    """Decide a pool, fill its medium before its keeper may start; returns what frees it again."""
    site.gate.nodes.add(NODE)
    try:
        site.pool(pool, store=False, nodeSelector=ONE_NODE, **{tier: "96Mi"})
        wait_until(lambda: site.keeper_pods(NODE, pool), 30, "a keeper Pod")
        filler = place_of(site, tier) / "somebody-else"
        filler.write_bytes(b"x" * 64 * MIB)
    finally:
        site.gate.nodes.clear()
    return filler.unlink


@pytest.mark.parametrize("tier", ["DRAM", "SSD"])
def test_a_medium_that_is_full_fails_the_bind_with_figures_and_loses_nothing(site: Site, tier: str) -> None:
    bound, pool = f"bound-{tier.lower()}", f"late-{tier.lower()}"
    site.pool(bound, store=False, nodeSelector=ONE_NODE, **{tier: "16Mi"})
    site.wait_bound(bound)
    try:
        file = next(place_of(site, tier).glob(f"kvpool-*{bound}*/segment"))
        before = file.stat()
        free = fill_during_bind(site, pool, tier)
        size = 96 * MIB
        site.wait_condition(
            pool, "BudgetNotApplied=Unknown Applying", f"desired 96Mi .*Failed.*no space for {size} bytes"
        )
        site.wait_condition(pool, "Bound=False", "0 of 96Mi")
        unit = site.unit(NODE, pool, tier)
        told = site.metric("agent", "kvpool_agent_unit_phase", NODE)
        assert told[f'{{phase="Failed",unit="{unit["name"]}"}}'] == 1
        figures = site.figures(pool, tier)
        assert (figures["admitted"], figures["bound"]) == (size, 0)
        assert (
            site.metric("operator", "kvpool_pool_bind_shortfall_bytes")[
                f'{{namespace="inference",pool="{pool}",tier="{tier}"}}'
            ]
            == size
        )
        assert (file.stat().st_ino, file.stat().st_blocks) == (before.st_ino, before.st_blocks)
        assert site.figures(bound, tier)["bound"] == 16 * MIB
        free()
        site.wait_bound(pool, seconds=RETRY_SECONDS)
    finally:
        site.delete_pool(pool)
        site.delete_pool(bound)


def test_what_others_hold_on_a_medium_is_not_offered(site: Site) -> None:
    filler = place_of(site, "SSD") / "somebody-else"
    filler.write_bytes(b"x" * 64 * MIB)
    try:
        site.pool("asking", mode="Recommend", store=False, nodeSelector=ONE_NODE, SSD="96Mi")
        site.wait_condition(
            "asking",
            "ActionWithheld=True ModeRecommend",
            "nothing would be admitted: 96Mi of SSD asked, room for 64Mi on 1 of 1 nodes",
        )
    finally:
        site.delete_pool_object("asking")
        filler.unlink()


@pytest.mark.parametrize("tier", ["DRAM", "SSD"])
def test_a_place_that_somebody_else_has_is_refused_and_left_alone(site: Site, tier: str) -> None:
    pool = f"taken-{tier.lower()}"
    numa = "n0" if tier == "DRAM" else "n-1"
    folder = place_of(site, tier) / f"kvpool-inference.{pool}.{tier.lower()}.{numa}-g1"
    folder.mkdir()
    (folder / "segment").write_bytes(b"precious")
    site.pool(pool, store=False, nodeSelector=ONE_NODE, **{tier: "16Mi"})
    unit = f"inference.{pool}.{tier.lower()}.{numa}"

    def phase_is(phase: str) -> bool:
        phases = site.metric("agent", "kvpool_agent_unit_phase", NODE)
        return phases.get(f'{{phase="{phase}",unit="{unit}"}}') == 1

    try:
        # An agent that found the folder before the plan came has the unit made beside it, as generation 2.
        wait_until(
            lambda: phase_is("Failed") or phase_is("Bound"),
            45,
            "a refusal, or a unit beside",
            tolerate=(OSError,),  # the agent may still be starting
        )
        if phase_is("Failed"):
            words = f"{folder.name.removeprefix('kvpool-')}.*kept"
            site.wait_condition(pool, "BudgetNotApplied=Unknown Applying", words)
        assert (folder / "segment").read_bytes() == b"precious"
        (folder / "segment").unlink()
        folder.rmdir()
        site.wait_bound(pool, seconds=RETRY_SECONDS)
    finally:
        site.delete_pool(pool)
