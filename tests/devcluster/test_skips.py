"""What cannot run is listed with its reason once, and fails where skips are forbidden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.conftest import pytest_configure, pytest_terminal_summary
"""
TESTS = """
import pytest

def test_one():
    pytest.skip("no such device")

@pytest.mark.skipif(True, reason="no such device")
def test_two():
    pass

@pytest.mark.cluster_kind
def test_three():
    pytest.skip("no container engine")

@pytest.mark.xfail
def test_four():
    assert False
"""


def run(folder: Path, strict: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_sample.py").write_text(TESTS)
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:randomly",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            ".",
        ],
        cwd=folder,
        env={**os.environ, "KVPOOL_STRICT": strict},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_each_reason_is_listed_once_with_its_count(tmp_path: Path) -> None:
    ended = run(tmp_path, strict="")
    assert ended.returncode == 0, ended.stdout
    closing = ended.stdout.split("not run on this machine")[1]
    assert "2 x no such device" in closing
    assert "1 x no container engine" in closing


def test_strict_turns_skips_into_failures_but_for_clusters_that_cannot_be_had(tmp_path: Path) -> None:
    ended = run(tmp_path, strict="1")
    assert ended.returncode == 1
    assert "1 failed, 1 skipped, 1 xfailed, 1 error" in ended.stdout
    assert "KVPOOL_STRICT=1 forbids this skip: no such device" in ended.stdout
    assert "1 x no container engine" in ended.stdout


def test_strict_refuses_a_module_that_skips_itself(tmp_path: Path) -> None:
    (tmp_path / "test_module.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    ended = run(tmp_path, strict="1")
    assert ended.returncode != 0
    assert "forbids this skip" in ended.stdout
