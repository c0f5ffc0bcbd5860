"""Disks: measured past every cache, with nothing left behind, or told why not in one sentence."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest

from kvpool.cli.planning.measuring import scratch_file
from kvpool.cli.planning.measuring.scratch_file import file_system_of
from kvpool.cli.planning.measuring.ssd import measure_ssd
from kvpool.plan.calibration.constants import Source
from tests.cli.planner.measured import by_name

MIB = 1 << 20


def test_a_disk_is_written_and_read_and_nothing_stays(tmp_path: Path) -> None:
    found = by_name(measure_ssd(tmp_path, 64 * MIB, 0.4))
    assert list(tmp_path.iterdir()) == []
    if file_system_of(tmp_path) == "tmpfs":
        assert "memory and no disk" in found["ssd.write"].reason
        return
    assert list(found) == [
        "ssd.write",
        *(name for depth in (1, 8, 32) for name in (f"ssd.read.qd{depth}", f"ssd.read.qd{depth}.p99")),
    ]
    for constant in found.values():
        assert constant.value is not None
        assert constant.value > 0
        assert constant.samples >= 1
    assert "short" in found["ssd.write"].reason


def test_memory_is_not_taken_for_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_file, "file_system_of", lambda _: "tmpfs")
    assert f"{tmp_path} is tmpfs, which is memory" in refused(tmp_path)


def refused(folder: Path) -> str:
    (reason,) = {constant.reason for constant in measure_ssd(folder, 64 * MIB, 0.1)}
    assert list(folder.iterdir()) == []
    return reason


def on_a_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch_file, "file_system_of", lambda _: "ext4")


def test_a_full_disk_says_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_disk(monkeypatch)
    facts = os.statvfs_result((4096, 4096, 10_000, 3_000, 2_560, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: facts)
    assert "has 10 MiB free and 128 are needed" in refused(tmp_path)


def test_a_disk_that_fills_up_meanwhile_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_disk(monkeypatch)

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(scratch_file, "_past_the_cache", lambda *_: None)
    monkeypatch.setattr(os, "posix_fallocate", full)
    assert "is full (No space left on device)" in refused(tmp_path)


def test_a_folder_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_disk(monkeypatch)

    def read_only(**_: object) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    assert "cannot be written (Read-only file system)" in refused(tmp_path)


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    reasons = {constant.reason for constant in measure_ssd(tmp_path / "none", 64 * MIB, 0.1)}
    assert reasons == {
        f"{tmp_path / 'none'} cannot be used: No such file or directory; name another folder (--folder)"
    }


def test_a_file_system_without_direct_transfers_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_disk(monkeypatch)

    def no_direct(_: int, command: int, argument: int = 0) -> int:
        if command == fcntl.F_SETFL and argument & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return 0

    monkeypatch.setattr(fcntl, "fcntl", no_direct)
    assert "takes no direct I/O (O_DIRECT)" in refused(tmp_path)


def test_a_disk_that_fails_while_it_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    on_a_disk(monkeypatch)
    monkeypatch.setattr(scratch_file, "_past_the_cache", lambda *_: None)
    monkeypatch.setattr(os, "preadv", broken)
    found = list(measure_ssd(tmp_path, 64 * MIB, 0.1))
    assert (found[0].name, found[0].source) == ("ssd.write", Source.MEASURED)
    assert [one.name for one in found[1:]] == ["ssd.read.qd1", "ssd.read.qd8", "ssd.read.qd32"]
    assert all("Input/output error" in one.reason for one in found[1:])
    assert list(tmp_path.iterdir()) == []


def test_nothing_stays_when_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_disk(monkeypatch)
    monkeypatch.setattr(scratch_file, "_past_the_cache", lambda *_: None)
    seen: list[Path] = []

    def stopped() -> None:
        with scratch_file.scratch_file(tmp_path, 64 * MIB):
            seen.extend(tmp_path.iterdir())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert seen == list(tmp_path.iterdir()) == []


def test_the_file_system_of_a_folder_is_that_of_the_last_mount_above_it(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    inner = (tmp_path / "data").resolve()
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/a rw\n"
        f"2 1 0:5 / {inner} rw shared:1 - xfs /dev/b rw\n"
        f"3 1 0:6 / {inner} rw - tmpfs tmpfs rw\n"
        f"4 1 0:7 / {inner}-more rw - nfs4 x rw\n"
        "broken line\n"
    )
    assert file_system_of(inner / "x", mounts) == "tmpfs"
    assert file_system_of(tmp_path, mounts) == "ext4"
    assert file_system_of(tmp_path, tmp_path / "none") == ""
