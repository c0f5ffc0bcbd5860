"""kubectl, for clusters that are not ours to speak to in any other way."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from devcluster import manifests, recipe

CALL_SECONDS = 60


class ClusterError(Exception):
    """A cluster for a person cannot be started, reached or chosen; the message says what to do."""


def kubectl(arguments: Sequence[str | Path], kubeconfig: Path | None = None) -> str:
    """Run kubectl, ours when it is built, else the one on PATH. Raises ClusterError."""
    try:
        program = str(recipe.binary("kubectl"))
    except recipe.NotBuiltError:
        program = shutil.which("kubectl") or ""
    if not program:
        raise ClusterError("kubectl is neither built nor on PATH: `make build-devcluster` builds it")
    which = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    try:
        result = subprocess.run(
            [program, *which, *arguments], capture_output=True, text=True, timeout=CALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"kubectl {arguments[0]}: no answer in {CALL_SECONDS} s") from None
    if result.returncode != 0:
        raise ClusterError(f"kubectl {arguments[0]}: {result.stderr.strip()}")
    return result.stdout


def answers(kubeconfig: Path) -> bool:
    """True when the cluster of a kubeconfig says it is ready."""
    if not kubeconfig.exists():
        return False
    try:
        return kubectl(["get", "--raw=/readyz", "--request-timeout=3s"], kubeconfig) == "ok"
    except ClusterError:
        return False


def install_crds(kubeconfig: Path) -> None:
    """Install our CRDs and Gateway API's and wait until they are Established. Raises ClusterError."""
    folders = (manifests.CRDS_FOLDER, recipe.gateway_api_crds())
    files = [f"--filename={file}" for folder in folders for file in manifests.read_crds(folder)]
    kubectl(["apply", "--server-side", "--force-conflicts", "--field-manager=devcluster", *files], kubeconfig)
    kubectl(["wait", "--for=condition=Established", "--timeout=30s", *files], kubeconfig)
