"""Observations rebuilt from statuses: what an operator wrote down, read back as if heard."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kvpool.api import KVNode
from kvpool.api.kvnode import DeviceVerdict, KVNodeStatus, UnitPhase
from kvpool.api.supernode import EvidenceClass
from kvpool.model.ids import DeviceRef
from kvpool.model.instant import Instant
from kvpool.model.observations import AgentView, DeviceView, EvidenceView, UnitView
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.plan.evidence import device_findings
from kvpool.plan.freshness import is_fresh
from kvpool.plan.kvnodes import kvnode_statuses
from kvpool.plan.liveness import HostState, host_findings
from kvpool.world.from_status import agents_from_status, with_observations
from tests.builders.objects import a_node, an_agent, dram

GIB = 1 << 30
NOW = Instant(10_000.0, datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC))
LEADING = Leadership(operator_epoch=1, since=0.0, api_back_since=0.0)
UNIT = UnitView(
    name="inference.chat.dram.n0",
    generation=2,
    phase=UnitPhase.BOUND,
    size_bytes=GIB,
    resident_bytes=GIB,
    used_bytes=None,
    placement={0: GIB},
    placement_verified=True,
    segment="host-node-1:17001",
    findings=(("NumaSkew", "half of it lies elsewhere"),),
)


def fatal(seconds_ago: float) -> EvidenceView:
    at = NOW.monotonic_seconds - seconds_ago
    return EvidenceView("nvml", "48", EvidenceClass.FATAL, 1, at, at, (at,))


def soft(times: int) -> EvidenceView:
    """Soft evidence that began twenty minutes ago and was last seen just now."""
    now = NOW.monotonic_seconds
    recent = tuple(now - 30 + number for number in range(times))
    return EvidenceView("nvml", "63", EvidenceClass.SOFT, times, now - 1200, now - 1, recent)


def written(agent: AgentView, at: Instant = NOW) -> Snapshot:
    """The snapshot whose one KVNode has the status that an operator writes of this agent."""
    empty = KVNode.parse({"metadata": {"name": agent.node, "generation": 1}})
    heard = Snapshot(
        leadership=LEADING,
        kvnodes={agent.node: empty},
        nodes={agent.node: a_node(agent.node)},
        agents={agent.node: agent},
    )
    (found,) = kvnode_statuses(heard, at)
    assert found.write is not None
    status = found.write.status
    assert isinstance(status, KVNodeStatus)
    kvnode = empty.model_copy(update={"status": status})
    return replace(heard, kvnodes={agent.node: kvnode}, agents={})


def later(seconds: float) -> Instant:
    return Instant(NOW.monotonic_seconds + seconds, NOW.wall + timedelta(seconds=seconds))


def test_units_and_media_come_back_as_they_were_heard() -> None:
    agent = replace(an_agent("node-1", dram(0, "8Gi"), at=NOW.monotonic_seconds), units=(UNIT,))
    rebuilt = agents_from_status(written(agent), NOW)["node-1"]
    assert rebuilt.units == agent.units
    assert rebuilt.sources == agent.sources
    assert (rebuilt.boot_id, rebuilt.incarnation, rebuilt.connected) == ("boot-node-1-1", 1, True)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        ((), DeviceVerdict.HEALTHY),
        ((fatal(5),), DeviceVerdict.FAULTY),
        ((soft(2),), DeviceVerdict.HEALTHY),
        ((soft(3),), DeviceVerdict.DEGRADED),
    ],
)
def test_a_device_is_judged_as_by_the_operator(
    evidence: tuple[EvidenceView, ...], verdict: DeviceVerdict
) -> None:
    device = DeviceView("0", "GPU-1", "uid-engine", evidence, observed=True)
    agent = replace(an_agent("node-1", at=NOW.monotonic_seconds), devices=(device,))
    snapshot = with_observations(written(agent), NOW)
    finding = device_findings(snapshot, NOW)[DeviceRef("node-1", "0")]
    assert finding.verdict is verdict
    assert snapshot.agents["node-1"].devices[0].holder == "uid-engine"


def test_a_device_that_could_not_be_asked_stays_unknown() -> None:
    device = DeviceView("0", "GPU-1", "", (), observed=False)
    agent = replace(an_agent("node-1", at=NOW.monotonic_seconds), devices=(device,))
    assert not agents_from_status(written(agent), NOW)["node-1"].devices[0].observed


@pytest.mark.parametrize(("age", "fresh"), [(0, True), (29, True), (39, True), (41, False)])
def test_a_status_may_be_as_old_as_the_operator_lets_it_become(age: float, fresh: bool) -> None:
    snapshot = written(an_agent("node-1", at=NOW.monotonic_seconds))
    then = later(age)
    assert is_fresh(agents_from_status(snapshot, then)["node-1"], then) is fresh


def test_a_disconnected_agent_gets_no_such_grace() -> None:
    agent = replace(an_agent("node-1", at=NOW.monotonic_seconds - 11), connected=False)
    rebuilt = agents_from_status(written(agent), NOW)["node-1"]
    assert not rebuilt.connected
    assert not is_fresh(rebuilt, NOW)


def test_a_held_lease_makes_a_host_alive_and_an_expired_one_does_not() -> None:
    held = with_observations(written(an_agent("node-1", at=NOW.monotonic_seconds)), NOW)
    assert host_findings(held, NOW)["node-1"].state is HostState.ALIVE
    gone = an_agent("node-1", at=NOW.monotonic_seconds - 60)
    snapshot = with_observations(written(gone), later(1))
    assert host_findings(snapshot, later(1))["node-1"].state is HostState.SILENT


def test_an_agent_that_never_reported_is_absent() -> None:
    snapshot = Snapshot(
        leadership=LEADING, kvnodes={"node-1": KVNode.parse({"metadata": {"name": "node-1"}})}
    )
    assert agents_from_status(snapshot, NOW) == {}


def test_times_that_cannot_be_read_break_nothing() -> None:
    snapshot = written(an_agent("node-1", at=NOW.monotonic_seconds))
    kvnode = snapshot.kvnodes["node-1"]
    status = kvnode.status.model_copy(update={"last_report": "soon"})
    broken = replace(snapshot, kvnodes={"node-1": kvnode.model_copy(update={"status": status})})
    assert agents_from_status(broken, NOW)["node-1"].reported_at == NOW.monotonic_seconds
