"""Traces as files: packed or not, cut, damaged, with lines of any length."""

import gzip
import hashlib
import io
import json
import sys
from pathlib import Path

import pytest

from kvpool.cli.faults import CliError
from kvpool.cli.planning import trace_files
from kvpool.cli.planning.trace_files import STANDARD_INPUT, open_workload
from kvpool.sim.workloads.reading import Reading

LINES = b"".join(
    json.dumps({"timestamp": at, "input_length": 512, "output_length": 1, "hash_ids": [at]}).encode() + b"\n"
    for at in range(2000)
)


def test_the_checksum_is_that_of_the_file_packed_or_not(tmp_path: Path) -> None:
    plain, packed = tmp_path / "log.jsonl", tmp_path / "log.jsonl.gz"
    plain.write_bytes(LINES)
    packed.write_bytes(gzip.compress(LINES))

    opened = [open_workload(path) for path in (plain, packed)]

    assert opened[0].requests == opened[1].requests
    assert [workload.checksum for workload in opened] == [
        hashlib.sha256(path.read_bytes()).hexdigest() for path in (plain, packed)
    ]
    assert [workload.source for workload in opened] == ["log.jsonl", "log.jsonl.gz"]


def test_the_checksum_of_a_part_is_that_of_its_lines(tmp_path: Path) -> None:
    packed = tmp_path / "log"
    packed.write_bytes(gzip.compress(LINES))

    workload = open_workload(packed, reading=Reading(limit_lines=3))

    assert workload.checksum == hashlib.sha256(b"".join(LINES.splitlines(keepends=True)[:3])).hexdigest()


def test_a_cut_gzip_says_how_much_can_be_used(tmp_path: Path) -> None:
    whole = gzip.compress(LINES)
    cut = tmp_path / "log.gz"
    cut.write_bytes(whole[: len(whole) // 2])

    with pytest.raises(
        CliError, match=r"^log.gz ends inside its compressed data after (\d+) lines: .*--limit \1"
    ) as told:
        open_workload(cut)

    lines = int(str(told.value).rsplit(" ", 1)[1])
    assert len(open_workload(cut, reading=Reading(limit_lines=lines)).requests) == lines


def test_a_damaged_gzip_is_told(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(LINES))
    whole[len(whole) // 2] ^= 0xFF
    whole[-8] ^= 0xFF
    damaged = tmp_path / "log.gz"
    damaged.write_bytes(whole)

    with pytest.raises(CliError, match=r"log.gz (is damaged after \d+ lines: .*; copy it again|line \d+: )"):
        open_workload(damaged)


def test_a_file_without_line_ends_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_files, "LONGEST_LINE_BYTES", 1 << 20)
    endless = tmp_path / "image.bin"
    endless.write_bytes(b"{" + b"x" * (2 << 20))

    with pytest.raises(CliError, match=r"image\.bin line 1 has more than 1 MiB"):
        open_workload(endless)


def test_a_file_that_cannot_be_opened_is_told_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"nowhere\.jsonl cannot be read: No such file"):
        open_workload(tmp_path / "nowhere.jsonl")
    with pytest.raises(CliError, match="cannot be read: Is a directory"):
        open_workload(tmp_path)


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "log").touch()

    with pytest.raises(CliError, match="log is empty"):
        open_workload(tmp_path / "log")


def test_standard_input_is_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(LINES)))

    workload = open_workload(STANDARD_INPUT)

    assert workload.source == "standard input"
    assert len(workload.requests) == 2000
