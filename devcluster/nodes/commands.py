"""What a person may do to the nodes of a cluster that another process holds: one line asked, one answered."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from devcluster.nodes.cabling import CablingError
from devcluster.nodes.cgroups import CgroupError
from devcluster.nodes.cluster import RealCluster
from devcluster.process import ProcessError

LINE_BYTES = 4096
ASK_SECONDS = 60.0
DONE = "done"
TROUBLES = (ValueError, OSError, ProcessError, CablingError, CgroupError, subprocess.TimeoutExpired)
"""What an action raises when it does not work; the nodes are held on."""


def actions(cluster: RealCluster) -> dict[str, Callable[[str], None]]:
    """By the word a person uses; each takes the name of a node."""
    return {
        "cut": cluster.power_cut,
        "start": cluster.start_node,
        "partition": cluster.partition,
        "partition-from-api": cluster.partition_from_api,
        "heal": cluster.heal,
    }


def serve(cluster: RealCluster, path: Path) -> None:
    """Do what is asked at a Unix socket, one thing after the other, for ever."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        while True:
            connection, _ = server.accept()
            with connection:
                _answer(cluster, connection)


def ask(path: Path, action: str, node: str) -> str:
    """Ask for an action; `done`, or what is wrong with it. Raises OSError when nobody serves, or no more."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(ASK_SECONDS)
        client.connect(str(path))
        client.sendall(f"{action} {node}".encode())
        answer = client.recv(LINE_BYTES).decode(errors="replace")
    if not answer:
        raise ConnectionAbortedError(f"no answer to {action} {node}: who held the nodes has ended")
    return answer


def _answer(cluster: RealCluster, connection: socket.socket) -> None:
    """Do what one client asks. It may go away at any moment; what it asked for is done all the same."""
    connection.settimeout(ASK_SECONDS)
    try:
        asked = connection.recv(LINE_BYTES).decode(errors="replace")
    except OSError:
        return
    answer = _done(cluster, asked)
    with contextlib.suppress(OSError):
        connection.sendall(answer.encode())


def _done(cluster: RealCluster, asked: str) -> str:
    action, _, node = asked.partition(" ")
    possible = actions(cluster)
    if action not in possible:
        return f"{action!r} is none of {', '.join(possible)}"
    try:
        possible[action](node)
    except TROUBLES as error:
        return str(error) or type(error).__name__
    return DONE
