"""`tools/test-e2e.sh`: a few failures get a second chance, many do not, and the time is told."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from devcluster.cache import CHECKOUT

SCRIPT = "tools/test-e2e.sh"
# Stands for python: pytest fails as often as FAILING says, and only once with ONCE; `-c` is the real one.
PYTHON = f"""#!/usr/bin/env bash
[ "$1" != -c ] || exec {sys.executable} "$@"
echo "$*" >>calls
case "$*" in *pytest*) ;; *) exit 0 ;; esac
[ "$FAILING" -gt 0 ] || exit 0
[[ "$*" != *--last-failed* || -z "$ONCE" ]] || exit 0
mkdir -p build/e2e-cache/v/cache
count='import json, sys; print(json.dumps(dict.fromkeys(range(int(sys.argv[1])))))'
{sys.executable} -c "$count" "$FAILING" >build/e2e-cache/v/cache/lastfailed
exit 1
"""


@dataclass
class Ran:
    """What a run came to."""

    code: int
    out: str
    err: str
    calls: list[str]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy2(CHECKOUT / SCRIPT, tmp_path / SCRIPT)
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    return tmp_path


def run(checkout: Path, *arguments: str, failing: int = 0, once: bool = True) -> Ran:
    path = f"{checkout / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [checkout / SCRIPT, *arguments],
        env={**os.environ, "PATH": path, "FAILING": str(failing), "ONCE": "1" if once else ""},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr, (checkout / "calls").read_text().splitlines())


def test_images_are_made_first_and_the_time_is_told_at_the_end(checkout: Path) -> None:
    ran = run(checkout, "tests/e2e/test_machines.py", "-k", "reboot")
    assert ran.code == 0, ran.err
    assert ran.calls[0] == "-m devcluster.images"
    assert ran.calls[1].endswith("-o testpaths=tests/e2e tests/e2e/test_machines.py -k reboot")
    assert len(ran.calls) == 2
    assert re.search(r"took \d+ s, .* 600 s at most", ran.out.splitlines()[-1])


@pytest.mark.parametrize(("once", "code"), [(True, 0), (False, 1)])
def test_three_failures_are_run_once_more(checkout: Path, once: bool, code: int) -> None:
    ran = run(checkout, failing=3, once=once)
    assert ran.code == code
    assert "3 failed; once more, on new nodes" in ran.out
    assert ran.calls[-1].endswith("-o testpaths=tests/e2e --last-failed --last-failed-no-failures none")
    assert len(ran.calls) == 3


def test_more_failures_than_that_are_final(checkout: Path) -> None:
    ran = run(checkout, failing=4)
    assert ran.code == 1
    assert "4 tests failed, more than 3: not run again" in ran.err
    assert len(ran.calls) == 2
    assert " s at most" in ran.out.splitlines()[-1]


def test_a_run_that_takes_too_long_says_so_and_fails_for_that_alone_not(checkout: Path) -> None:
    script = checkout / SCRIPT
    script.write_text(script.read_text().replace("most_seconds=600", "most_seconds=-1"))
    ran = run(checkout)
    assert ran.code == 0
    assert "SLOW: more than -1 s" in ran.err
