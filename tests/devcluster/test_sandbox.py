"""A sandbox works, can be entered, passes signals and exit codes on, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster import sandbox, sandbox_init
from devcluster.process import ManagedProcess
from tests.harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def outside() -> Iterator[None]:
    """Sandboxes of their own even when the tests themselves run in one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(sandbox.MARK, raising=False)
        try:
            sandbox.usable_kind()
        except sandbox.SandboxError as error:
            pytest.skip(f"no sandbox can be made here: {error}")
        yield


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "devcluster.sandbox", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def mounts_and_links() -> tuple[str, list[tuple[int, str]]]:
    return Path("/proc/self/mounts").read_text(), socket.if_nameindex()


def test_a_sandbox_has_its_own_network_mounts_and_processes() -> None:
    ended = run("--", "sh", "-c", "ip -brief address; cat /proc/self/mounts; echo processes: /proc/[0-9]*")
    assert ended.returncode == 0, ended.stderr
    assert f"{sandbox.OWN_ADDRESS}/16" in ended.stdout
    assert "eth0" not in ended.stdout
    assert "kvpool-shm /dev/shm tmpfs" in ended.stdout
    processes = ended.stdout.rsplit("processes:", 1)[1].split()
    assert len(processes) <= 3


def test_nothing_is_left_on_the_host() -> None:
    before = mounts_and_links()
    marker = f"kvpool-left-behind-{os.getpid()}"
    script = (
        f"ip address add 10.77.0.99/32 dev {sandbox.HOSTS_DEVICE}; echo x > /dev/shm/{marker};"
        f"mkdir /mnt/{marker}; mount -t tmpfs none /mnt/{marker}; exec -a {marker} sleep 600 &"
    )
    assert run("--", "bash", "-c", script).returncode == 0
    assert mounts_and_links() == before
    assert not Path("/dev/shm", marker).exists()
    assert not Path("/mnt", marker).exists()
    commands = [path.read_bytes() for path in running_commands() if path.exists()]
    assert not [one for one in commands if one.startswith(marker.encode())]


def running_commands() -> list[Path]:
    return list(Path("/proc").glob("[0-9]*/cmdline"))


def test_the_exit_status_is_the_commands_own() -> None:
    assert run("--", "sh", "-c", "exit 7").returncode == 7
    assert run("--", "no-such-command").returncode == 127


def test_a_signal_reaches_the_command(tmp_path: Path) -> None:
    script = "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    arguments = [sys.executable, "-m", "devcluster.sandbox", "--", "sh", "-c", script]
    process = ManagedProcess("sandbox", arguments, tmp_path / "log", cwd=ROOT).start()
    process.wait_for_line("^ready$")
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(10) == 9
    assert "told" in process.text()


def test_everything_ends_when_the_sandbox_is_killed(tmp_path: Path) -> None:
    script = "echo ready; exec sleep 600"
    arguments = [sys.executable, "-m", "devcluster.sandbox", "--", "sh", "-c", script]
    process = ManagedProcess("sandbox", arguments, tmp_path / "log", cwd=ROOT).start()
    process.wait_for_line("^ready$")
    children = descendants(process.pid)
    assert len(children) >= 2
    os.kill(process.pid, signal.SIGKILL)
    process.wait(5)
    wait_until(lambda: not any(alive(pid) for pid in children), 5, "every process of the sandbox to end")


def test_a_held_sandbox_is_entered_and_ended(tmp_path: Path) -> None:
    pidfile = str(tmp_path / "pid")
    assert run("--hold", pidfile).returncode == 0
    try:
        first = run(
            "--enter", pidfile, "--", "sh", "-c", "pwd; echo kept > /mnt/note; sleep 600 >/dev/null 2>&1 &"
        )
        assert first.stdout.strip() == str(ROOT)
        assert run("--enter", pidfile, "--", "cat", "/mnt/note").stdout == "kept\n"
    finally:
        assert run("--stop", pidfile).returncode == 0
    gone = run("--enter", pidfile, "--", "true")
    assert gone.returncode == sandbox.IMPOSSIBLE
    assert "no sandbox is running" in gone.stderr
    assert not Path("/mnt/note").exists()


def descendants(pid: int) -> list[int]:
    direct = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return direct + [one for child in direct for one in descendants(child)]


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_signal_for_a_command_that_has_just_ended_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    waitpid = os.waitpid

    def interrupted(pid: int, options: int) -> tuple[int, int]:
        ended = waitpid(pid, options)
        signal.raise_signal(signal.SIGTERM)
        return ended

    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(os, "waitpid", interrupted)
    try:
        assert sandbox_init.run_as_first_process(["true"]) == 0
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
