"""Looking without touching: what modes below Enforce show, say and write."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from demo.neighbours.engine_options import EngineOptions
from demo.neighbours.engine_process import EngineProcess
from devcluster.audit import AuditRecord
from devcluster.ports import free_port
from tests.harness.objects import MIB
from tests.harness.waiting import wait_until
from tests.system.capacity.site import Site, SiteFactory

pytestmark = [pytest.mark.real, pytest.mark.mooncake, pytest.mark.xdist_group("observe")]

ENGINE_BYTES = 32 * MIB
FRESH_SECONDS = 15


@pytest.fixture(scope="module")
def site(make_site: SiteFactory) -> Site:
    site = make_site(hosts=1, mode="Observe")
    site.budget(mode="Observe")
    return site


@pytest.fixture(scope="module")
def engine(site: Site) -> Iterator[EngineProcess]:
    """An engine of the existing deployment, with memory of its own in the store."""
    host = site.hosts["node-1"]
    options = EngineOptions(
        name="engine",
        address=host.address,
        port=free_port(host.address),
        store_port=free_port(host.address),
        master=site.mooncake.endpoint,
        segment_bytes=ENGINE_BYTES,
    )
    started = EngineProcess(options, site.installed.folder).start()
    yield started
    started.process.terminate()


def set_cap(site: Site, mode: str) -> None:
    """Upgrade the chart, unless it is so already, and wait for an operator of the new cap to lead."""
    if site.installed.values["mode"] == mode:
        return
    before = site.installed.process("operator").pid
    site.installed.install(mode)
    wait_until(lambda: site.installed.process("operator").pid != before, 30, "a new operator")
    wait_until(
        lambda: site.metric("operator", "kvpool_operator_is_leader") == {"": 1.0},
        30,
        "the new operator to lead",
        tolerate=(OSError,),
    )


def is_allowed(site: Site, write: AuditRecord) -> bool:
    """Whether a write is one of those that mode Observe may make."""
    if write.api_group == "kvpool.dev":
        return True
    at = (write.api_group, write.resource, write.namespace)
    own = site.installed.namespace
    named = {
        ("coordination.k8s.io", "leases", own): "kvpool-operator",
        ("", "secrets", own): "kvpool-ca",
        ("", "configmaps", own): "kvpool-ca",
    }
    if at in named:
        return write.name in (named[at], "")  # a create names no object in its path
    if at[:2] == ("events.k8s.io", "events"):
        return write.regarding.startswith("kvpool.dev/")
    return at[:2] == ("authentication.k8s.io", "tokenreviews")


def foreign_writes(site: Site) -> list[str]:
    """Writes of the operator and of the agents that mode Observe may not make."""
    agents = f"system:serviceaccount:{site.installed.namespace}:kvpool-agent"
    found = site.installed.plane.audit.writes(user=site.operator_user, succeeded_only=False)
    found += site.installed.plane.audit.writes(user=agents, succeeded_only=False)
    return [str(write) for write in found if not is_allowed(site, write)]


@pytest.fixture(autouse=True)
def nothing_foreign_is_written(site: Site) -> Iterator[None]:
    """Whatever a test of this module does: its objects observe, recommend or are capped."""
    yield
    assert foreign_writes(site) == []


def test_the_status_shows_what_others_hold_where_and_how_old_the_figures_are(
    site: Site, engine: EngineProcess
) -> None:
    site.pool("looking", mode="Observe")
    site.wait_condition("looking", "StoreReachable=True Answers", "others brought 32Mi: node-1 32Mi")
    assert engine.process.running
    wait_until(lambda: site.figures("gpu", kind="TierBudget").get("foreign") == ENGINE_BYTES, 20, "foreign")
    (tier, _) = site.status("gpu", "TierBudget")["tiers"]
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(tier["observedAt"])
    assert age.total_seconds() < FRESH_SECONDS
    figures = site.figures("gpu", kind="TierBudget")
    assert figures["declared"] == 256 * MIB
    assert figures["admitted"] == figures["bound"] == figures["used"] == figures["unknown"] == 0


def test_a_mode_above_the_cap_is_capped_and_says_which_cap(site: Site) -> None:
    set_cap(site, "Observe")
    site.pool("eager", mode="Enforce", DRAM="64Mi")
    site.wait_condition(
        "eager", "ActionWithheld=True ModeCapped", "asks for mode Enforce, the cluster-wide cap is Observe"
    )
    assert site.condition("eager", "Admitted")["status"] == "Unknown"
    assert not site.decided("node-1", "eager")
    site.delete_pool_object("eager")


def test_recommend_says_what_it_would_do_and_does_not(site: Site) -> None:
    set_cap(site, "Enforce")
    site.pool("asking", mode="Recommend", DRAM="64Mi")
    site.wait_condition("asking", "ActionWithheld=True ModeRecommend", "would bind 64Mi of DRAM on 1 nodes")
    assert not site.decided("node-1", "asking")
    site.delete_pool_object("asking")


def test_raising_the_cap_alone_changes_nothing(site: Site) -> None:
    set_cap(site, "Observe")
    site.pool("calm", mode="Observe", DRAM="64Mi")
    site.wait_condition("calm", "ActionWithheld=False ModeObserve")
    set_cap(site, "Enforce")
    wait_until(lambda: site.capacity_steps() > 3, 60, "the new leader to plan a few times")
    site.pool("calmer", mode="Observe", DRAM="64Mi")
    site.wait_condition("calmer", "ActionWithheld=False ModeObserve")
    written = site.installed.plane.audit.writes(user=site.operator_user)
    assert {write.resource for write in written} >= {"kvpools", "tierbudgets", "kvnodes", "leases"}
    for pool in ("calm", "calmer"):
        assert site.condition(pool, "ActionWithheld")["reason"] == "ModeObserve"
        assert not site.decided("node-1", pool)
        assert site.keeper_pods("node-1", pool) == []
        site.delete_pool_object(pool)
