"""`kubectl kvpool top`: the figures that move."""

from __future__ import annotations

import signal
import subprocess

import pytest

from devcluster.controlplane import ControlPlane
from kvpool.cli.views.live_figures import bar
from tests.cli.conftest import PLUGIN, Plugin, ago, own, put
from tests.harness.waiting import wait_until


@pytest.mark.parametrize(("part", "length"), [(0, 0), (1, 1), (50, 12), (100, 24), (130, 24)])
def test_a_bar_is_as_long_as_its_part_and_never_hides_something(part: int, length: int) -> None:
    assert bar(part, 100) == "█" * length


def half_full(namespace: str) -> dict[str, object]:
    figures = {
        "name": "DRAM",
        "declared": "8Gi",
        "admitted": "8Gi",
        "bound": "8Gi",
        "used": "4Gi",
        "observedAt": ago(2),
    }
    return own("KVPool", "chat", {"store": {"none": {}}}, namespace, status={"tiers": [figures]})


def test_the_fill_of_a_pool_is_shown_once(kvpool_plane: ControlPlane, namespace: str, plugin: Plugin) -> None:
    put(kvpool_plane, half_full(namespace))
    ran = plugin("top", "-n", namespace)
    row = next(line for line in ran.out.splitlines() if line.startswith(f"{namespace}/chat"))
    assert row.split()[1:6] == ["DRAM", "4Gi", "8Gi", "50%", "█" * 12]
    assert ran.code == 0


def test_watching_shows_again_until_it_is_interrupted(
    kvpool_plane: ControlPlane, namespace: str, operator_namespace: str
) -> None:
    put(kvpool_plane, half_full(namespace))
    where = ["--kubeconfig", str(kvpool_plane.kubeconfig), "--operator-namespace", operator_namespace]
    watching = subprocess.Popen(
        [str(PLUGIN), "top", "-w", "--every", "100ms", "-n", namespace, *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    seen = 0

    def twice() -> bool:
        nonlocal seen
        assert watching.stdout is not None
        seen += watching.stdout.readline().startswith(f"{namespace}/chat")
        return seen == 2

    wait_until(twice, 60, "the second look", poll_seconds=0)
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=30)
    assert (watching.returncode, err) == (0, "")
