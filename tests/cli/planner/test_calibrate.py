"""`kvpool calibrate --local`: what it prints, what can be read back, and that it leaves nothing behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from kvpool.cli.faults import CliError
from kvpool.cli.planner import kvpool
from kvpool.cli.planning.measuring.scratch_file import file_system_of
from kvpool.plan.calibration.constants import Source
from kvpool.plan.calibration.document import from_document

MEMORY = "/dev/shm"
"""A folder that is no disk, on every Linux."""


def calibrate(*flags: str) -> Result:
    return CliRunner().invoke(kvpool, ["calibrate", *flags])


def test_it_says_which_machine_it_would_measure() -> None:
    result = calibrate()
    assert isinstance(result.exception, CliError)
    assert "--local" in str(result.exception)


def test_a_document_can_be_read_back_with_every_origin() -> None:
    result = calibrate(
        "--local",
        "--part",
        "network",
        "--part",
        "accelerator",
        "--seconds",
        "1",
        "--card",
        "H200",
        "-o",
        "json",
    )
    assert result.exit_code == 0, result.output
    found = from_document(json.loads(result.stdout))
    assert found.date.endswith("Z")
    assert found.machine["processors"]
    assert found.value("network.loopback.burst4")
    assert found.value("card.products.16bit") == 989e12
    sources = {constant.name: constant.source for constant in found.constants}
    assert sources["network.loopback"] is Source.MEASURED


def test_yaml_says_the_same() -> None:
    result = calibrate("--local", "--part", "accelerator", "--seconds", "1", "--card", "B200", "-o", "yaml")
    found = from_document(yaml.safe_load(result.stdout))
    assert found.value("card.products.4bit") == 9e15


def test_people_read_a_table_with_methods_and_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvpool.cli.planning.measuring.cuda.LIBRARY", "libcuda-of-nobody.so.1")
    result = calibrate("--local", "--part", "accelerator", "--seconds", "1", "--card", "H200")
    assert result.exit_code == 0
    assert "card.memory.rate" in result.output
    assert "4,800.00 GB/s" in result.output
    assert "DataSheet" in result.output
    assert "card.copy.in: not measured: no accelerator can be measured" in result.output
    assert max(map(len, result.output.splitlines())) <= 100


@pytest.mark.parametrize(("name", "told"), [("none", "is not there"), ("file", "is no folder")])
def test_a_folder_that_is_none_is_refused_before_anything_is_measured(
    tmp_path: Path, name: str, told: str
) -> None:
    (tmp_path / "file").write_text("")
    result = calibrate("--local", "--seconds", "3600", "--folder", str(tmp_path / name))
    assert isinstance(result.exception, CliError)
    assert str(result.exception) == f"--folder {tmp_path / name} {told}: name a folder on the SSD to measure"


def test_a_folder_is_not_passed_over_where_the_ssd_is_not_asked_for(tmp_path: Path) -> None:
    result = calibrate("--local", "--part", "network", "--folder", str(tmp_path))
    assert isinstance(result.exception, CliError)
    assert str(result.exception) == f"--folder {tmp_path} is for the SSD: add --part ssd, or leave it out"


@pytest.mark.parametrize("asked", [("--part", "ssd"), ("--folder", MEMORY)], ids=" ".join)
@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_nothing_of_what_was_asked_for_is_a_finding(
    asked: tuple[str, ...], form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(MEMORY)
    monkeypatch.setattr("kvpool.cli.planning.calibrate.SHARES", {"ssd": 1.0})
    result = calibrate("--local", "--seconds", "1", *asked, "-o", form)
    assert result.exit_code == 1
    said = result.stdout if form == "table" else result.stderr
    assert "nothing of ssd was measured:" in said
    assert "which is memory: name a folder on the SSD (--folder)" in " ".join(said.split())
    if form != "table":
        found = from_document(yaml.safe_load(result.stdout))
        assert {constant.source for constant in found.constants} == {Source.NOT_MEASURED}


def test_what_was_not_asked_for_by_name_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvpool.cli.planning.measuring.cuda.LIBRARY", "libcuda-of-nobody.so.1")
    monkeypatch.setattr("kvpool.cli.planning.calibrate.SHARES", {"accelerator": 1.0})
    assert calibrate("--local", "--seconds", "1").exit_code == 0


def test_wide_is_for_people_too() -> None:
    result = calibrate("--local", "--part", "accelerator", "--seconds", "1", "--card", "H200", "-o", "wide")
    assert result.exit_code == 0
    assert "METHODS AND REMARKS" in result.output


def test_a_card_that_nobody_knows_is_refused_with_those_that_are() -> None:
    result = calibrate("--local", "--card", "H2000")
    assert result.exit_code == 2
    assert "'H200'" in result.output


def open_without_a_name(process: int, folder: Path) -> bool:
    """Tell whether a process holds a file in a folder that no longer has a name there."""
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            link = str(entry.readlink())
        except OSError:
            continue
        if link.startswith(str(folder)) and link.endswith("(deleted)"):
            return True
    return False


def test_stopped_in_the_middle_it_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    flags = ["calibrate", "--local", "--part", "ssd", "--file-size", "64", "--seconds", "120"]
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from kvpool.cli.planner import main; main()",
            *flags,
            "--folder",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while process.poll() is None and not open_without_a_name(process.pid, tmp_path):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        process.send_signal(signal.SIGINT)
        answered, told = process.communicate(timeout=60)
    if file_system_of(tmp_path) == "tmpfs":
        assert "which is memory" in answered
        return
    assert process.returncode == 2
    assert told.strip().endswith("stopped")
    assert list(tmp_path.iterdir()) == []
