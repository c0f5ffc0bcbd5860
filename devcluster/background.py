"""The Go control plane as a person uses it: it goes on when the command that started it has ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

from devcluster.controlplane import ControlPlane
from devcluster.kubectl import ClusterError

STOP_SECONDS = 10.0


def start(folder: Path) -> Path:
    """Start a control plane with its state in `folder` and return its kubeconfig. Raises ProcessError."""
    stop(folder)
    plane = ControlPlane(folder, controllers=True).start()
    _pids_file(folder).write_text(json.dumps(plane.pids))
    return plane.kubeconfig


def stop(folder: Path) -> None:
    """End what `start` left running and remove the folder. Raises ClusterError when it does not end."""
    for pid in running(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + STOP_SECONDS
    while left := running(folder):
        if time.monotonic() > end:
            raise ClusterError(f"processes {left} do not end")
        time.sleep(0.02)
    if folder.exists():
        shutil.rmtree(folder)


def running(folder: Path) -> list[int]:
    """Processes of the control plane in `folder` that are alive, in stopping order."""
    try:
        pids = json.loads(_pids_file(folder).read_text())
    except (OSError, ValueError):
        return []
    return [pid for pid in pids if _is_ours(pid, folder)]


def _is_ours(pid: int, folder: Path) -> bool:
    """Process ids are used again: only one that was started with our folder counts."""
    try:
        return str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _pids_file(folder: Path) -> Path:
    return folder / "pids.json"
