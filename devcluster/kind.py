"""A kind cluster, where a container engine answers and can pull kind's image."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from devcluster.kubectl import ClusterError

NAME = "kvpool"
ENGINES = ("docker", "podman")
ASK_SECONDS = 10
CREATE_SECONDS = 600


def usable() -> str:
    """The container engine kind can use here. Raises ClusterError with what is missing."""
    if shutil.which("kind") is None:
        raise ClusterError("`kind` is not on PATH")
    for engine in ENGINES:
        if shutil.which(engine) and _run([engine, "info"], ASK_SECONDS).returncode == 0:
            return engine
    raise ClusterError(f"no container engine answers ({', '.join(ENGINES)})")


def start(kubeconfig: Path) -> None:
    """Create the cluster, or write the kubeconfig of the one that is there. Raises ClusterError."""
    usable()
    if NAME in _run(["kind", "get", "clusters"], ASK_SECONDS).stdout.split():
        command = ["kind", "export", "kubeconfig", f"--name={NAME}", f"--kubeconfig={kubeconfig}"]
    else:
        command = ["kind", "create", "cluster", f"--name={NAME}", f"--kubeconfig={kubeconfig}", "--wait=120s"]
    result = _run(command, CREATE_SECONDS)
    if result.returncode != 0:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise ClusterError(f"kind cannot create a cluster: {last}")


def stop() -> None:
    """Delete the cluster if there is one."""
    if shutil.which("kind"):
        _run(["kind", "delete", "cluster", f"--name={NAME}"], CREATE_SECONDS)


def _run(command: list[str], seconds: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer in {seconds:g} s")
