"""Runs a replay as a process of its own, so that the store's native client stays out of this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from demo.replay import ReplayCounts
from demo.trace import DEFAULT_TRACE
from devcluster.cache import CHECKOUT

QUIET = {"MC_LOG_LEVEL": "ERROR"}
"""Mooncake's client writes many lines to standard error; GLOG_minloglevel has no effect on it."""


class ReplayFailedError(RuntimeError):
    """A replay ended without a result; the message carries the end of what it wrote."""


@dataclass(frozen=True, kw_only=True)
class ReplayPlan:
    """Replay the first `requests` of `trace` against the store of `master`, from an empty store.

    `local_name` ("host:port") is what the client calls itself; it brings no memory.
    """

    master: str
    local_name: str
    trace: Path = DEFAULT_TRACE
    requests: int = 2000
    block_bytes: int = 8192


def run_replay(
    plan: ReplayPlan, folder: Path, *, show: Callable[[str], None], deadline_seconds: float = 120.0
) -> ReplayCounts:
    """Replay to the end and return the counts; `show` gets a line of progress about once a second.

    `folder` takes the result and the client's log. Raises ReplayFailedError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    out, log = folder / "replay.json", folder / "replay.log"
    out.unlink(missing_ok=True)
    with log.open("w") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", "demo.replay", *_arguments(plan, out.resolve())],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=CHECKOUT,
            env={**os.environ, **QUIET},
        )
        overdue = threading.Timer(deadline_seconds, child.kill)
        overdue.start()
        try:
            assert child.stdout is not None
            for line in child.stdout:
                show(line.rstrip())
            code = child.wait()
        finally:
            overdue.cancel()
            child.kill()
            child.wait()
    if code != 0 or not out.exists():
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
        why = f"not done after {deadline_seconds:g} s" if code == -9 else f"exit status {code}"
        raise ReplayFailedError(f"replay: {why}; log {log}:\n{tail}")
    return ReplayCounts(**json.loads(out.read_text()))


def _arguments(plan: ReplayPlan, out: Path) -> list[str]:
    return [
        f"--master={plan.master}",
        f"--local-name={plan.local_name}",
        f"--trace={plan.trace.resolve()}",
        f"--requests={plan.requests}",
        f"--block-bytes={plan.block_bytes}",
        f"--out={out}",
    ]
