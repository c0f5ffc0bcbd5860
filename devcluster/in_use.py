"""Folders of the cache that somebody uses stay; of all the others, the few that were used last."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO


def use(folder: Path) -> TextIO:
    """Say that the folder, which may be missing yet, is in use: until what is returned is closed."""
    while True:
        mark = _mark(folder).open("w")
        fcntl.flock(mark, fcntl.LOCK_SH)
        if _is_there(mark, folder):
            break
        mark.close()  # taken away while we waited for it
    if folder.exists():
        folder.touch()  # lately used
    return mark


def forget(folders: Iterable[Path], kept: int) -> None:
    """Remove all but the `kept` that were used last, and those that somebody uses."""
    lately = sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in lately[kept:]:
        with _mark(folder).open("w") as mark:
            try:
                fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder)
            _mark(folder).unlink(missing_ok=True)


def _mark(folder: Path) -> Path:
    return folder.with_suffix(".use")


def _is_there(mark: TextIO, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(mark.fileno()), _mark(folder).stat())
    except FileNotFoundError:
        return False
