"""A control plane started for a person outlives the command that started it, and ends when told to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devcluster import background, kubectl, recipe

ROOT = Path(__file__).resolve().parents[2]
START = """
import pathlib, sys
from devcluster import background
print(background.start(pathlib.Path(sys.argv[1])))
"""


def test_it_outlives_its_starter_until_it_is_stopped(tmp_path: Path) -> None:
    if not recipe.CONTROL_PLANE.built:
        pytest.skip("kube-apiserver is not built yet: run `python -m devcluster.build control-plane`")
    folder = tmp_path / "plane"
    try:
        ended = subprocess.run(
            [sys.executable, "-c", START, str(folder)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        kubeconfig = Path(ended.stdout.strip())
        assert len(background.running(folder)) == 3
        assert kubectl.answers(kubeconfig)
    finally:
        background.stop(folder)
    assert background.running(folder) == []
    assert not kubectl.answers(kubeconfig)
    assert not folder.exists()


def test_a_process_that_took_over_an_old_number_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        (tmp_path / "pids.json").write_text(f"[{stranger.pid}]")
        background.stop(tmp_path)
        assert stranger.poll() is None
        stranger.kill()
