"""The end without ceremony."""

from __future__ import annotations

import subprocess
import sys
import threading

from kvpool.cluster.hard_exit import EXIT_CODE, DeadlineGuard
from tests.harness.waiting import wait_until


def run(code: str, **options: int) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", code]
    return subprocess.run(
        argv, stdout=subprocess.PIPE, text=True, timeout=20, check=False, stderr=options.get("stderr", -1)
    )


def test_a_hard_exit_says_why_and_runs_nothing_else() -> None:
    ended = run(
        "import atexit\n"
        "from kvpool.cluster.hard_exit import hard_exit\n"
        "atexit.register(print, 'clean-up ran')\n"
        "try:\n    hard_exit('the reason')\n"
        "finally:\n    print('finally ran', flush=True)\n"
    )
    assert ended.returncode == EXIT_CODE
    assert "the reason" in ended.stderr
    assert ended.stdout == ""


def test_a_standard_error_that_nobody_reads_does_not_hold_the_exit_up() -> None:
    ended = run(
        "import os\n"
        "from kvpool.cluster.hard_exit import hard_exit\n"
        "read, write = os.pipe()\n"
        "os.set_blocking(write, False)\n"
        "try:\n    while True: os.write(write, b'x' * 65536)\n"
        "except BlockingIOError: pass\n"
        "os.set_blocking(write, True)\n"
        "os.dup2(write, 2)\n"
        "hard_exit('unheard')\n"
    )
    assert ended.returncode == EXIT_CODE


def test_the_guard_ends_a_process_whose_event_loop_hangs() -> None:
    ended = run(
        "import asyncio, time\n"
        "from kvpool.cluster.hard_exit import DeadlineGuard\n"
        "async def main():\n"
        "    DeadlineGuard(time.monotonic, 'the loop hangs').move(time.monotonic() + 0.2)\n"
        "    time.sleep(15)\n"
        "asyncio.run(main())\n"
    )
    assert ended.returncode == EXIT_CODE
    assert "the loop hangs" in ended.stderr


def test_a_deadline_that_is_moved_in_time_ends_nothing_and_one_that_is_not_does() -> None:
    now = [0.0]
    reasons: list[str] = []
    ended = threading.Event()

    def end(reason: str) -> None:
        reasons.append(reason)
        ended.set()

    guard = DeadlineGuard(lambda: now[0], "late", end=end)
    guard.move(5.0)
    now[0] = 4.0
    guard.move(9.0)
    now[0] = 8.0
    assert not ended.wait(0.3)
    now[0] = 9.1
    wait_until(lambda: reasons == ["late"], 5, "the guard to act")


def test_a_stopped_guard_ends_nothing() -> None:
    ended = threading.Event()
    guard = DeadlineGuard(lambda: 100.0, "late", end=lambda _: ended.set())
    guard.stop()
    guard.move(1.0)
    assert not ended.wait(0.3)
