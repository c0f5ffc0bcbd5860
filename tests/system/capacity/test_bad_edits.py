"""Manifests that only the operator can know to be bad, and edits that must not cost what is bound."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.neighbours.store import join_store
from devcluster.ports import free_port
from devcluster.rest import ApiError
from tests.harness.objects import KVPOOL, MIB, NAMESPACE
from tests.harness.waiting import wait_until
from tests.system.capacity.site import HOST_FOLDER, SSD_FOLDER, Site, SiteFactory
from tools.crdgen.samples import BadSample, bad_samples, good_samples

pytestmark = [
    pytest.mark.real,
    pytest.mark.memory,
    pytest.mark.mooncake,
    pytest.mark.xdist_group("bad-edits"),
]

KNOWN_BY_THE_OPERATOR = [sample for sample in bad_samples() if sample.condition is not None]


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    return make_site(hosts=2)


@pytest.fixture(autouse=True)
def budget(site: Site) -> Iterator[None]:
    """The budget `gpu`, as it is before every test."""
    site.budget()
    yield
    site.budget()


def fitting(manifest: dict[str, Any]) -> dict[str, Any]:
    """A good sample, small enough for these hosts."""
    text = copy.deepcopy(manifest)
    if text["kind"] == "KVPool":
        for tier in text["spec"].get("tiers", []):
            tier["size"] = "64Mi"
    if text["kind"] == "TierBudget":
        for tier in text["spec"]["tiers"]:
            tier |= {"perNode": "256Mi", "reserve": "64Mi"}
    return text


@contextlib.contextmanager
def existing(site: Site, *names: str) -> Iterator[None]:
    """Good samples that exist for a while."""
    made = [fitting(good_samples()[name]) for name in names]
    for manifest in made:
        site.admin.apply(manifest, field_manager="people")
    try:
        yield
    finally:
        for manifest in reversed(made):
            remove(site, manifest)


def remove(site: Site, manifest: dict[str, Any]) -> None:
    name = manifest["metadata"]["name"]
    if manifest["kind"] == "KVPool":
        site.delete_pool(name)
    elif manifest["kind"] != "TierBudget":
        with contextlib.suppress(ApiError):
            site.admin.delete(KVPOOL, manifest["kind"], name, NAMESPACE)
        wait_until(
            lambda: site.admin.find(KVPOOL, manifest["kind"], name, NAMESPACE) is None, 20, f"{name} to go"
        )


def use(site: Site, size: int) -> None:
    """Put `size` bytes into the store, to stay."""
    store = join_store(
        local_name=f"{site.hosts['infra-0'].address}:{free_port()}",
        master=site.mooncake.endpoint,
        segment_bytes=0,
        buffer_bytes=16 * MIB,
    )
    for index in range(size // 65536):
        assert store.put(f"kept-{index}", b"k" * 65536) == 0
    store.close()


def unit_folders(site: Site, node: str) -> list[Path]:
    """What is left of units on a node."""
    return list(site.hosts[node].files.seen(f"{HOST_FOLDER}/units").iterdir())


@contextlib.contextmanager
def shared_pod(site: Site, sample: BadSample) -> Iterator[None]:
    """The Pod that two groups quarrel about, for the sample that is about one."""
    if sample.condition is None or sample.condition.reason != "PodsClaimedByOther":
        yield
        return
    container = {"name": "engine", "image": "engine"}
    metadata = {"name": "decode-0", "namespace": NAMESPACE, "labels": {"app": "decode"}}
    site.hosts["node-1"].add_pod(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    )
    yield
    site.admin.delete("v1", "Pod", "decode-0", NAMESPACE)


@pytest.mark.parametrize(
    "sample", KNOWN_BY_THE_OPERATOR, ids=lambda sample: sample.name.removesuffix(".yaml")
)
def test_a_bad_manifest_gets_its_condition_with_the_figures(site: Site, sample: BadSample) -> None:
    assert sample.condition is not None
    before = [sample.before] if sample.before else []
    name, kind = sample.manifest["metadata"]["name"], sample.manifest["kind"]
    with shared_pod(site, sample), existing(site, *before, *sample.beside):
        if sample.before:
            site.wait_bound(name)
            use(site, 4 * MIB)
            wait_until(lambda: site.figures(name)["used"] >= 4 * MIB, 30, "use to be seen")
        manifest = copy.deepcopy(sample.manifest)
        site.admin.apply(manifest, field_manager="people", force=True)
        try:
            said = f"{sample.condition.type}={sample.condition.status} {sample.condition.reason}"
            found = site.wait_condition(name, said, re.escape(sample.message), kind)
            assert (
                found["observedGeneration"]
                == site.admin.get(KVPOOL, kind, name, NAMESPACE)["metadata"]["generation"]
            )
            if sample.before:
                assert site.figures(name)["bound"] == 64 * MIB
        finally:
            if not sample.before:
                remove(site, manifest)


def test_a_bad_edit_keeps_what_is_bound(site: Site) -> None:
    with site.bound_pool(DRAM="64Mi", store=False) as pool:
        units = {node: site.decided(node, pool) for node in site.nodes}
        site.pool(pool, DRAM="900Ti", store=False)
        site.wait_condition(
            pool, "Admitted=False NotEnoughRoom", "900Ti of DRAM asked.*64Mi stay as they are"
        )
        assert {node: site.decided(node, pool) for node in site.nodes} == units
        figures = site.figures(pool)
        assert (figures["admitted"], figures["bound"]) == (64 * MIB, 64 * MIB)
        # and never more bound than declared goes unsaid
        assert figures["declared"] == 900 << 40


def test_a_shrink_without_hold_gives_back_what_is_no_longer_asked(site: Site) -> None:
    with site.bound_pool(DRAM="128Mi", store=False) as pool:
        site.pool(pool, DRAM="64Mi", store=False)
        wait_until(
            lambda: (site.figures(pool)["admitted"], site.figures(pool)["bound"]) == (64 * MIB, 64 * MIB),
            60,
            "64 MiB to be left",
        )
        site.wait_bound(pool)


def test_a_deleted_pool_keeps_memory_and_segments_unless_told_otherwise(site: Site) -> None:
    pool = "retained"
    site.pool(pool, DRAM="64Mi")
    try:
        site.wait_bound(pool)
        files = {node: site.segment_file(node, site.unit(node, pool)).stat() for node in site.nodes}
        segments = site.mooncake.admin.segments()
        site.admin.delete(KVPOOL, "KVPool", pool, NAMESPACE)
        site.budget(name="zz-marker", mode="Observe", nodeSelector={"matchLabels": {"no": "node"}})
        site.wait_condition("zz-marker", "Ready=False NoNodes", kind="TierBudget")  # a plan later
        for node in site.nodes:
            after = site.segment_file(node, site.unit(node, pool)).stat()
            assert (after.st_ino, after.st_blocks) == (files[node].st_ino, files[node].st_blocks)
        assert site.mooncake.admin.segments() == segments
        assert site.figures("gpu", kind="TierBudget")["bound"] == 64 * MIB
        # made anew, the pool takes its memory over
        site.pool(pool, DRAM="64Mi")
        site.wait_bound(pool)
        assert all(site.unit(node, pool)["generation"] == 1 for node in site.nodes)
    finally:
        site.admin.delete(KVPOOL, "TierBudget", "zz-marker")
        site.delete_pool(pool)


@pytest.mark.parametrize("policy", ["Drain", "Release"])
def test_a_deleted_pool_gives_its_memory_back_as_its_policy_says(site: Site, policy: str) -> None:
    pool = f"given-back-{policy.lower()}"
    site.pool(pool, DRAM="64Mi", reclaimPolicy=policy)
    site.wait_bound(pool)
    files = [site.segment_file(node, site.unit(node, pool)) for node in site.nodes]
    site.delete_pool(pool, policy)
    assert not any(file.exists() for file in files)
    wait_until(lambda: site.mooncake.admin.segments() == (), 20, "its segments to leave the store")
    wait_until(lambda: not any(site.keeper_pods(node, pool) for node in site.nodes), 30, "no keeper Pod")
    assert [path.name for node in site.nodes for path in unit_folders(site, node)] == []


def test_nodes_that_a_budget_no_longer_selects_keep_their_units_and_get_no_more(site: Site) -> None:
    with site.bound_pool(DRAM="128Mi", store=False) as pool:
        one = {"matchLabels": {"kubernetes.io/hostname": "node-1"}}
        site.budget(nodeSelector=one)
        wait_until(lambda: site.status("gpu", "TierBudget")["nodes"]["matched"] == 1, 20, "one node")
        assert site.figures(pool)["bound"] == 128 * MIB
        assert site.figures("gpu", kind="TierBudget")["bound"] == 64 * MIB
        site.pool(pool, DRAM="192Mi", store=False)
        site.wait_bound(pool)
        assert site.segment_file("node-1", site.unit("node-1", pool)).stat().st_size == 128 * MIB
        assert site.segment_file("node-2", site.unit("node-2", pool)).stat().st_size == 64 * MIB
        site.budget()


def test_a_disk_budget_above_its_volume_is_refused_with_both_figures(site: Site) -> None:
    tier = {"name": "SSD", "perNode": "100Gi", "path": SSD_FOLDER, "volumeLimit": "80Gi"}
    with pytest.raises(ApiError, match=r"100Gi.*80Gi"):
        site.budget(tier, name="too-big")
