"""Ends and starts that go wrong: signals at a bad moment, hung threads, stopped keepers, full disks."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest

from devcluster.process import ManagedProcess
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool_agent import actions
from kvpool_agent.enrolment import Enrolment, EnrolmentOptions
from kvpool_agent.stream import OperatorStream, Session, StreamOver
from tests.agent.node import MIB, TOOLS, TestNode
from tests.agent.quiet_node import QuietNode
from tests.agent.scripted_operator import SERVER_NAME, ScriptedOperator
from tests.harness.waiting import wait_until


async def test_a_stream_that_ends_just_when_the_agent_is_told_to_end_does_not_keep_it_alive(
    tmp_path: Path,
) -> None:
    options = EnrolmentOptions("node-1", "127.0.0.1:1", tmp_path / "token", tmp_path / "ca.pem", SERVER_NAME)
    stream = OperatorStream(
        "127.0.0.1:1", SERVER_NAME, Enrolment(tmp_path, options, lambda: None), QuietNode(), lambda: None
    )
    operator_hangs_up, writing_is_cancelled = asyncio.Event(), asyncio.Event()

    async def read(_: Session) -> None:
        await operator_hangs_up.wait()
        raise StreamOver("the operator ended it")

    async def write_slowly(_: Session) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            writing_is_cancelled.set()
            await asyncio.sleep(0.1)

    session = Session("127.0.0.1:1", mock.AsyncMock(), mock.AsyncMock())
    with (
        mock.patch.object(stream, "_read", read),
        mock.patch.object(stream, "_renew", write_slowly),
        mock.patch.object(stream, "_report", write_slowly),
    ):
        following = asyncio.create_task(stream._follow(session))
        await asyncio.sleep(0)
        operator_hangs_up.set()
        await writing_is_cancelled.wait()
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(following, 5)


def test_a_thread_that_hangs_does_not_keep_the_agent_from_ending() -> None:
    program = (
        "import asyncio, os; from kvpool_agent.main import end_in_any_case\n"
        "async def live():\n"
        "    asyncio.get_running_loop().run_in_executor(None, os.read, os.pipe()[0], 1)\n"
        "    end_in_any_case(0.2)\n"
        "asyncio.run(live())\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=20, check=False).returncode == 0


def test_an_agent_that_is_told_to_end_before_it_is_up_ends(
    node: TestNode, operator: ScriptedOperator
) -> None:
    """A process whose default is to ignore the signal, as the first one of a container has."""
    node.start_agent()
    node.agent.wait_for_line("tmpfs")
    os.kill(node.agent.pid, signal.SIGTERM)
    assert node.agent.wait(10) == 0


def test_an_agent_that_is_told_to_end_while_a_client_holds_its_ports_ends(
    node: TestNode, operator: ScriptedOperator
) -> None:
    node.start_agent()
    node.wait_until_connected()
    with node.half_open(node.metrics_port), node.half_open(node.peer_port):
        began = time.monotonic()
        assert node.agent.terminate() == 0
    assert time.monotonic() - began < 8


def test_an_agent_that_starts_on_a_full_disk_renews_its_lease_and_keeps_its_units(
    may_mount: None, node: TestNode, operator: ScriptedOperator
) -> None:
    state = node.places.root
    state.mkdir()
    actions.mount_tmpfs(state, "kvpool-test", f"size={MIB}")
    unit = node.unit("ssd")
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    node.keeper_of(unit)
    operator.wait_for_unit(unit.name, "Bound", 30)
    with pytest.raises(OSError, match="No space left"):
        (state / "filler").write_bytes(bytes(2 * MIB))
    node.restart_agent()
    operator.forget_reports()
    node.wait_until_connected()
    operator.wait_for_report(
        "the unit, though its keeper cannot be heard",
        lambda r: [u.phase for u in r.units] in (["Bound"], ["Degraded"]),
    )


def test_a_keeper_that_is_stopped_is_told_of_and_takes_nothing_with_it(
    node: TestNode, operator: ScriptedOperator
) -> None:
    unit = node.unit("ssd")
    operator.plan(revision=1, units=[unit])
    node.start_agent()
    keeper = node.keeper_of(unit)
    operator.wait_for_unit(unit.name, "Bound", 30)
    keeper.signal(signal.SIGSTOP)
    silent = operator.wait_for_unit(unit.name, "Degraded", 30)
    assert "KeeperSilent" in [finding.reason for finding in silent.findings]
    operator.plan(revision=2, units=[node.unit("ssd", release=wire.RELEASE_MODE_NOW)])
    refused = operator.wait_for_report(
        "who holds the file", lambda r: f"pid {keeper.pid}" in r.units[0].message, 30
    )
    assert refused.units[0].phase == "Draining"
    keeper.signal(signal.SIGCONT)
    operator.wait_for_unit(unit.name, "Released", 30)


def test_a_plan_that_changes_its_mind_all_the_time_ends_where_it_ends(
    node: TestNode, operator: ScriptedOperator
) -> None:
    units = [node.unit("ssd", generation=g, release=wire.RELEASE_MODE_NOW * (g % 2)) for g in (2, 1)]
    node.start_agent()
    node.wait_until_connected()
    for revision in range(1, 60):
        operator.plan(revision=revision, units=[units[revision % 2]])
        time.sleep(0.05)  # the pace of the attack, not a wait
    last = node.unit("ssd", generation=3)
    operator.plan(revision=100, units=[last])
    node.keeper_of(last)
    operator.wait_for_unit(last.name, "Bound", 30)
    assert [path.name for path in node.ssd.iterdir()] == [f"kvpool-{last.name}-g3"]


def test_a_keeper_that_is_a_containers_own_program_gives_back_and_stays_until_it_is_told_to_end(
    may_mount: None, node: TestNode, operator: ScriptedOperator
) -> None:
    """One that ended would be started again, just when its Pod is deleted, and not hear of it in time."""
    node.start_agent()
    node.wait_until_connected()
    unit = node.unit()
    operator.plan(revision=1, units=[unit])
    directory = node.places.unit(unit.name, 1)
    wait_until(directory.is_dir, 15, "the place of the unit")
    program = [TOOLS / "kvpool-keeper", "--unit-dir", str(directory), "--address", node.address]
    first = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *map(str, program)]
    with ManagedProcess("container", first, node.folder / "container.log") as container:
        operator.wait_for_unit(unit.name, "Bound")
        operator.plan(revision=2, units=[node.unit(release="RELEASE_MODE_DRAIN")])
        operator.wait_for_unit(unit.name, "Released")
        (keeper,) = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
        with pytest.raises(AssertionError):
            wait_until(lambda: not container.running, 2, "the keeper to end by itself")
        os.kill(int(keeper), signal.SIGTERM)
        assert container.wait(5) == 0
