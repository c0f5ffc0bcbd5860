"""The agent dies, units and data stay."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.neighbours.mooncake import MooncakeMaster
from devcluster.ports import free_ports
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool_agent.places import Places, SecondAgentError
from tests.agent.conftest import MakeNode
from tests.agent.node import MIB, TestNode
from tests.agent.scripted_operator import ScriptedOperator
from tests.harness.waiting import wait_until

ADOPTED_WITHIN_SECONDS = 3.0


def bound(node: TestNode, operator: ScriptedOperator, unit: wire.Unit) -> None:
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    node.keeper_of(unit)
    operator.wait_for_unit(unit.name, "Bound")


def restart_and_wait(
    node: TestNode, operator: ScriptedOperator, name: str, phase: str = "Bound"
) -> wire.UnitReport:
    """Kill and start the agent; return the unit as its next Hello reports it."""
    hellos = len(operator.heard.hellos)
    node.agent.kill()
    began = time.monotonic()
    node.start_agent()

    def greeted() -> bool:
        assert len(operator.heard.hellos) > hellos, node.agent.tail()
        return True

    wait_until(greeted, 10, "the next Hello", tolerate=(AssertionError,))
    unit = next(u for u in operator.heard.hellos[-1].report.units if u.name == name)
    assert unit.phase == phase, unit
    assert time.monotonic() - began < ADOPTED_WITHIN_SECONDS
    return unit


def test_a_restarted_agent_adopts_what_is_bound_before_it_says_hello(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit()
    bound(node, operator, unit)
    file = node.shared_memory / f"kvpool-{unit.name}-g1" / "segment"
    before = (file.stat().st_ino, file.stat().st_ctime_ns)
    keeper_pid = node.keepers[f"{unit.name}-g1"].pid
    restart_and_wait(node, operator, unit.name)
    assert (file.stat().st_ino, file.stat().st_ctime_ns) == before
    status = node.keeper_status(unit)
    assert status is not None
    assert status.pid == keeper_pid
    assert status.contents_lost_count == 0


def test_the_incarnation_grows_and_the_key_is_not_asked_for_again(
    node: TestNode, operator: ScriptedOperator
) -> None:
    node.start_agent()
    node.wait_until_connected()
    first = operator.heard.hellos[-1].incarnation
    node.restart_agent()
    wait_until(lambda: len(operator.heard.hellos) > 1, 10, "the second Hello")
    assert operator.heard.hellos[-1].incarnation > first
    assert len(operator.heard.enrolments) == 1


def test_a_truncated_record_costs_nothing_when_all_else_agrees(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit()
    bound(node, operator, unit)
    node.agent.kill()
    record = next(node.places.journal.glob("*.json"))
    record.write_bytes(record.read_bytes()[:40])
    operator.forget_reports()
    node.start_agent()
    operator.wait_for_unit(unit.name, "Bound")
    status = node.keeper_status(unit)
    assert status is not None
    assert status.contents_lost_count == 0
    assert len(list(node.places.quarantine.iterdir())) == 1
    assert "kvpool_agent_unreadable_records_total 1.0" in node.get("/metrics")[1]


def test_a_unit_whose_record_and_spec_are_both_unreadable_is_reported_and_kept(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit()
    bound(node, operator, unit)
    node.agent.kill()
    for broken in (
        next(node.places.journal.glob("*.json")),
        node.places.unit(unit.name, 1) / "spec.json",
    ):
        broken.write_text("{")
    node.start_agent()
    failed = operator.wait_for_unit(unit.name, "Failed")
    assert "it is kept" in failed.message
    assert (node.shared_memory / f"kvpool-{unit.name}-g1" / "segment").stat().st_size == 8 * MIB


@pytest.mark.memory
def test_something_that_only_looks_like_ours_is_reported_and_left_alone(
    mounting_node: TestNode, operator: ScriptedOperator
) -> None:
    unit = mounting_node.unit()
    bound(mounting_node, operator, unit)
    mounting_node.agent.kill()
    for path in mounting_node.places.journal.glob("*.json"):
        path.unlink()
    operator.plan(revision=2)
    mounting_node.start_agent()
    report = operator.wait_for_report("the stranger", lambda r: r.applied_revision == 2 and r.units)
    assert [finding.reason for finding in report.units[0].findings] == ["Quarantined"]
    assert mounting_node.mounts() == (f"kvpool-{unit.name}-g1",)


@pytest.mark.memory
def test_a_mount_that_vanished_is_lost_and_a_new_generation_takes_its_place(
    mounting_node: TestNode, operator: ScriptedOperator
) -> None:
    unit = mounting_node.unit()
    bound(mounting_node, operator, unit)
    mounting_node.keepers[f"{unit.name}-g1"].kill()
    os.system(f"umount {mounting_node.places.unit(unit.name, 1)}/mem")
    lost = operator.wait_for_unit(unit.name, "Lost")
    assert "nothing is mounted" in lost.message
    again = mounting_node.unit(generation=2)
    operator.plan(revision=2, units=[again])
    mounting_node.keeper_of(again)
    report = operator.wait_for_report(
        "generation 2", lambda r: [(u.generation, u.phase) for u in r.units] == [(2, "Bound")]
    )
    assert report.units[0].placement_verified


def test_a_unit_of_an_earlier_boot_is_lost_and_a_file_is_not(
    node: TestNode, operator: ScriptedOperator
) -> None:
    memory, disk = node.unit(), node.unit("ssd")
    operator.plan(revision=1, units=[memory, disk])
    node.start_agent()
    for unit in (memory, disk):
        node.keeper_of(unit)
    for unit in (memory, disk):
        operator.wait_for_unit(unit.name, "Bound")
    node.agent.kill()
    for record in node.places.journal.glob("*.json"):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        record.write_text(record.read_text().replace(boot, "00000000-0000-0000-0000-000000000000"))
    node.start_agent()
    report = operator.wait_for_report(
        "one lost, one bound",
        lambda r: {u.name: u.phase for u in r.units} == {memory.name: "Lost", disk.name: "Bound"},
    )
    assert "booted anew" in next(u for u in report.units if u.name == memory.name).message


def test_a_second_agent_on_the_same_node_ends_with_a_message(node: TestNode) -> None:
    node.start_agent()
    node.wait_until_connected()
    places = Places(node.places.root)
    with pytest.raises(SecondAgentError, match="another agent holds"):
        places.lock()


def test_a_keeper_that_dies_is_degraded_and_bound_again_with_its_contents_reported_lost(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit()
    bound(node, operator, unit)
    keeper = node.keepers[f"{unit.name}-g1"]
    keeper.kill()
    degraded = operator.wait_for_unit(unit.name, "Degraded")
    assert "KeeperSilent" in [finding.reason for finding in degraded.findings]
    keeper.start()
    operator.forget_reports()
    operator.wait_for_unit(unit.name, "Bound")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[MooncakeMaster]:
    rpc_port, admin_port = free_ports(2)
    with MooncakeMaster(
        address="127.0.0.1",
        log_path=tmp_path / "master.log",
        rpc_port=rpc_port,
        admin_port=admin_port,
        client_ttl_seconds=4,
    ) as running:
        yield running


@pytest.mark.memory
@pytest.mark.mooncake
def test_data_in_mooncake_is_readable_throughout_the_death_and_return_of_the_agent(
    may_mount: None, make_node: MakeNode, operator: ScriptedOperator, master: MooncakeMaster
) -> None:
    from demo.neighbours.store import join_store  # noqa: PLC0415 - a heavy native module, for this test alone

    node = make_node(tmpfs="privileged")
    admin = master.admin.base_url.removeprefix("http://")
    unit = node.unit(size_bytes=32 * MIB, mooncake=wire.MooncakeTarget(master=master.endpoint, admin=admin))
    bound(node, operator, unit)
    segment = operator.wait_for_unit(unit.name, "Bound").segment
    assert [s.name for s in master.admin.wait_for_segments(1)] == [segment]
    store = join_store(
        local_name="127.0.0.1:17999", master=master.endpoint, segment_bytes=0, buffer_bytes=4 * MIB
    )
    values = {f"block-{number}": os.urandom(64 << 10) for number in range(16)}
    for key, value in values.items():
        assert store.put(key, value) == 0
    operator.wait_for_report(
        "used bytes", lambda r: any(u.HasField("used_bytes") and u.used_bytes >= MIB for u in r.units)
    )
    assert all(store.get(key) == value for key, value in values.items())
    node.agent.kill()
    assert all(store.get(key) == value for key, value in values.items())
    hellos = len(operator.heard.hellos)
    node.start_agent()
    wait_until(lambda: len(operator.heard.hellos) > hellos, ADOPTED_WITHIN_SECONDS, "adoption")
    assert [u.phase for u in operator.heard.hellos[-1].report.units] == ["Bound"]
    assert all(store.get(key) == value for key, value in values.items())
    assert [s.name for s in master.admin.segments()] == [segment]
    store.close()
