"""Who holds nodes for a person tells what went wrong with an action, and holds on."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.nodes import commands
from devcluster.nodes.cabling import CablingError
from devcluster.nodes.cgroups import CgroupError
from devcluster.nodes.cluster import RealCluster
from devcluster.process import ProcessError
from tests.harness.waiting import wait_until

DEADLINE_SECONDS = 10


class EndOfTestError(Exception):
    """Ends the service, as no trouble of an action may."""


class Troubled(RealCluster):
    """A cluster whose actions all raise `trouble`."""

    def __init__(self) -> None:
        self.trouble: Exception | None = None
        self.asked = 0

    def power_cut(self, name: str) -> None:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble


@pytest.fixture
def cluster() -> Troubled:
    return Troubled()


@pytest.fixture
def path(cluster: Troubled, tmp_path: Path) -> Iterator[Path]:
    """The socket at which the cluster is served."""
    path = tmp_path / "asked"

    def serve() -> None:
        with pytest.raises(EndOfTestError):
            commands.serve(cluster, path)

    service = threading.Thread(target=serve)
    service.start()
    wait_until(path.is_socket, DEADLINE_SECONDS, "the socket")
    yield path
    cluster.trouble = EndOfTestError()
    with pytest.raises(ConnectionAbortedError, match="who held the nodes has ended"):
        commands.ask(path, "cut", "node1")
    service.join(DEADLINE_SECONDS)
    assert not service.is_alive()


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (ValueError("'node7' is none of the nodes"), "'node7' is none of the nodes"),
        (
            FileNotFoundError(2, "No such file or directory", "boot-id"),
            "No such file or directory: 'boot-id'",
        ),
        (subprocess.TimeoutExpired(["ip", "link"], 10), "timed out after 10 seconds"),
        (CablingError("no link"), "no link"),
        (CgroupError("not empty"), "not empty"),
        (ProcessError("ended with 1"), "ended with 1"),
        (OSError(), "OSError"),
    ],
)
def test_what_goes_wrong_is_told_and_the_next_is_served(
    cluster: Troubled, path: Path, trouble: Exception, told: str
) -> None:
    cluster.trouble = trouble
    assert told in commands.ask(path, "cut", "node1")
    cluster.trouble = None
    assert commands.ask(path, "cut", "node1") == commands.DONE


def test_one_who_asks_and_goes_away_is_served_all_the_same(cluster: Troubled, path: Path) -> None:
    for said in (b"", b"cut node1", b"\xff\xfe"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(said)
    assert "is none of cut, start" in commands.ask(path, "explode", "node1")
    assert cluster.asked == 1
