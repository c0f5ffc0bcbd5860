"""Real nodes for a person: a cluster in a sandbox of its own, which goes on when its starter has ended."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from devcluster import recipe, sandbox
from devcluster.kubectl import ClusterError
from devcluster.nodes import cgroups, commands, requirements
from devcluster.nodes.cluster import NAME_FILE, READY_SECONDS, RealCluster
from devcluster.nodes.settings import ClusterSettings
from devcluster.process import ManagedProcess, ProcessError

PROGRAMS = ("kubectl", "helm")
CLUSTER = "cluster"


def start(folder: Path, count: int, images: Sequence[Path]) -> None:
    """Start `count` nodes that have the images, our CRDs and Gateway API's. Raises ClusterError."""
    if reason := requirements.missing():
        raise ClusterError(reason)
    stop(folder)
    folder.mkdir(parents=True)
    inner = [sys.executable, "-m", "devcluster.nodes.held", str(folder), str(count), *map(str, images)]
    outer = [sys.executable, "-m", "devcluster.sandbox", f"--pidfile={_pidfile(folder)}", "--", *inner]
    own = {sandbox.MARK: ""}  # a sandbox of its own, even when this process is in one
    holder = ManagedProcess("nodes", outer, folder / "nodes.log", own).start()
    try:
        holder.wait_for(_socket(folder).is_socket, READY_SECONDS, "to have all nodes Ready")
    except ProcessError as error:
        raise ClusterError(str(error)) from error


def running(folder: Path) -> bool:
    """True when nodes are up there."""
    return sandbox.running(_pidfile(folder)) is not None and _socket(folder).is_socket()


def enter(folder: Path, command: Sequence[str]) -> NoReturn:
    """Become a command beside the nodes, with KUBECONFIG set, and kubectl and helm on PATH."""
    paths = [str(recipe.binary(program).parent) for program in PROGRAMS]
    os.environ["PATH"] = os.pathsep.join([*paths, os.environ["PATH"]])
    os.environ["KUBECONFIG"] = str(_kubeconfig(folder))
    sandbox.enter(_pidfile(folder), command)


def act(folder: Path, action: str, node: str) -> None:
    """Do something to a node, as `commands.actions` names it. Raises ClusterError."""
    try:
        answer = commands.ask(_socket(folder), action, node)
    except OSError as error:
        raise ClusterError(f"no nodes are running: {error}") from error
    if answer != commands.DONE:
        raise ClusterError(answer)


def stop(folder: Path) -> None:
    """End the nodes and remove the folder; none running is fine. Raises CgroupError, SandboxError."""
    sandbox.stop(_pidfile(folder))
    name = folder / CLUSTER / NAME_FILE
    if name.exists():
        cgroups.remove(name.read_text())
    shutil.rmtree(folder, ignore_errors=True)


def _pidfile(folder: Path) -> Path:
    return folder / "sandbox.pid"


def _socket(folder: Path) -> Path:
    return folder / "commands.sock"


def _kubeconfig(folder: Path) -> Path:
    return folder / "kubeconfig"


def main() -> None:
    """Hold a cluster in this sandbox until the sandbox ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("images", type=Path, nargs="*")
    options = parser.parse_args()
    settings = ClusterSettings(images=options.images)
    with RealCluster(options.folder / CLUSTER, options.count, settings) as cluster:
        cluster.plane.install_crds()
        cluster.plane.install_gateway_api()
        kubeconfig = _kubeconfig(options.folder)
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(cluster.kubeconfig.read_text())
        commands.serve(cluster, _socket(options.folder))


if __name__ == "__main__":
    main()
