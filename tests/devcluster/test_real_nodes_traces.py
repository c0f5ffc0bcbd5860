"""Clusters of real nodes leave nothing behind, are not in each other's way, and say when they cannot be."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster import sandbox
from devcluster.nodes import cgroups, layout, requirements
from devcluster.nodes.requirements import NodesImpossibleError
from tests.devcluster.test_real_nodes import why_not
from tests.harness.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90


class OneNode:
    """A cluster of one node in a sandbox of its own, whichever one the tests run in."""

    def __init__(self, folder: Path) -> None:
        outside = {name: value for name, value in os.environ.items() if name != sandbox.MARK}
        self._child = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "devcluster.sandbox",
                "--",
                sys.executable,
                "-m",
                "tests.devcluster.one_node",
                folder,
            ],
            cwd=ROOT,
            env=outside,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.told = self._line()

    def stop(self) -> dict[str, Any]:
        """End it in order, and return what it says has changed."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        return self._line()

    def kill(self) -> None:
        """End it in no order at all."""
        with contextlib.suppress(ProcessLookupError):  # ended before
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait(10)
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                stream.close()

    def _line(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        assert line, f"ended with {self._child.wait(START_SECONDS)}"
        said: dict[str, Any] = json.loads(line)
        return said


def groups(cluster: str) -> list[Path]:
    return list(cgroups.ROOT.glob(f"*/{cluster}"))


@pytest.fixture
def one_node(tmp_path: Path) -> Iterator[OneNode]:
    if reason := why_not():
        pytest.skip(reason)
    started = OneNode(tmp_path)
    yield started
    started.kill()
    cgroups.prune()


@pytest.mark.real
def test_nothing_is_left_of_a_cluster_that_was_stopped(one_node: OneNode) -> None:
    during, name = one_node.told["during"], one_node.told["name"]
    assert {"br0", "cp", "node1"} <= set(during["links"])
    assert groups(name)
    ended = one_node.stop()
    assert ended["after"] == ended["before"]
    assert not groups(name)


@pytest.mark.real
def test_a_sandbox_has_one_cluster_and_a_second_one_does_not_disturb_it(one_node: OneNode) -> None:
    assert one_node.told["refused"] == "this sandbox has a cluster of nodes already: stop it first"
    assert {"br0", "cp", "node1"} <= set(one_node.told["during"]["links"])


@pytest.mark.real
def test_cgroups_of_a_killed_cluster_are_pruned_and_those_of_a_living_one_are_not(one_node: OneNode) -> None:
    name = one_node.told["name"]
    assert name not in cgroups.prune()
    assert groups(name)
    one_node.kill()

    def pruned() -> bool:
        cgroups.prune()  # another cluster that starts now may have done it before
        return not groups(name)

    wait_until(pruned, 10, "the kernel to end the cluster's processes, and its cgroups to go")


def test_missing_programs_are_named_by_their_packages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cpuset").mkdir()
    (tmp_path / "cpuset" / "cpuset.cpus").touch()
    monkeypatch.setattr(requirements, "ROOT", tmp_path)
    monkeypatch.setattr(requirements, "CNI_FOLDERS", (tmp_path,))
    monkeypatch.setattr(requirements, "is_root", lambda: True)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert requirements.missing().endswith(
        "apt-get install conntrack containerd iproute2 iptables mount runc socat util-linux"
        " containernetworking-plugins"
    )


def test_only_root_on_a_machine_with_the_older_cgroups_can_run_nodes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(requirements, "UID_MAP", tmp_path / "map")
    (tmp_path / "map").write_text("0 1000 1\n")
    assert requirements.missing().startswith("real nodes need root")
    monkeypatch.setattr(requirements, "is_root", lambda: True)
    monkeypatch.setattr(requirements, "ROOT", tmp_path)
    assert "cgroup v1" in requirements.missing()


def test_state_must_not_lie_where_a_node_has_a_folder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "missing", lambda: "")
    monkeypatch.setenv(sandbox.MARK, "1")
    requirements.require([Path("/srv/state")])
    with pytest.raises(NodesImpossibleError, match="/var/lib/state is not seen by nodes"):
        requirements.require([Path("/var/lib/state")])
    monkeypatch.delenv(sandbox.MARK)
    with pytest.raises(NodesImpossibleError, match="live in a sandbox"):
        requirements.require([])


def test_names_of_nodes_go_from_one_to_nine() -> None:
    assert layout.node_names(3) == ["node1", "node2", "node3"]
    for count in (0, 10):
        with pytest.raises(ValueError, match="use 1 to 9"):
            layout.node_names(count)
    for name in ("node0", "node10", "cp", "worker"):
        with pytest.raises(ValueError, match="node1 to node9"):
            layout.node_index(name)
