"""A file to measure a disk with: without a name, so that nothing stays behind, however this ends."""

import errno
import fcntl
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

MIB: Final = 1 << 20
MEMORY_FILE_SYSTEMS: Final = ("tmpfs", "ramfs", "devtmpfs")
SHARE_OF_FREE: Final = 2
LEAST_BYTES: Final = 64 * MIB


class NoDiskError(Exception):
    """A folder cannot be measured; the text says why, and what to do, in one sentence."""


@contextmanager
def scratch_file(folder: Path, wanted_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield the descriptor of a file past the page cache, and its bytes: at most half of what is free.

    Raises:
        NoDiskError: when the folder is no place for it.
    """
    kind = file_system_of(folder)
    if kind in MEMORY_FILE_SYSTEMS:
        raise NoDiskError(f"{folder} is {kind}, which is memory: name a folder on the SSD (--folder)")
    free = _free_bytes(folder)
    size = min(wanted_bytes, free // SHARE_OF_FREE) // MIB * MIB
    if size < LEAST_BYTES:
        raise NoDiskError(
            f"{folder} has {free // MIB} MiB free and {SHARE_OF_FREE * LEAST_BYTES // MIB} are needed: free "
            f"some, or name another folder (--folder)"
        )
    try:
        # The library makes it without a name (O_TMPFILE), or takes the name away at once.
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            descriptor = file.fileno()
            _past_the_cache(descriptor, folder)
            os.posix_fallocate(descriptor, 0, size)
            yield descriptor, size
    except OSError as error:
        raise NoDiskError(_sentence(error, folder)) from None


def page_aligned(size_bytes: int) -> mmap.mmap:
    """Memory that starts at a page, as transfers past the cache need it."""
    return mmap.mmap(-1, size_bytes)


def file_system_of(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of file system that a folder is on; empty when it cannot be told."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
        whole = folder.resolve()
    except OSError:
        return ""
    found, longest = "", -1
    for line in lines:
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        point = Path(fields[4].replace("\\040", " "))
        # The last mount of a point hides the ones before.
        if whole.is_relative_to(point) and len(point.parts) >= longest:
            found, longest = right.split()[0], len(point.parts)
    return found


def _free_bytes(folder: Path) -> int:
    try:
        facts = os.statvfs(folder)
    except OSError as error:
        raise NoDiskError(_sentence(error, folder)) from None
    return facts.f_bavail * facts.f_frsize


def _past_the_cache(descriptor: int, folder: Path) -> None:
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
    except OSError:
        raise NoDiskError(
            f"the file system of {folder} takes no direct I/O (O_DIRECT), so that its cache would be "
            f"measured: name a folder on another one (--folder)"
        ) from None


def _sentence(error: OSError, folder: Path) -> str:
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{folder} cannot be written ({error.strerror}): name a folder that can be (--folder)"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{folder} is full ({error.strerror}): free some, or name another folder (--folder)"
    return f"{folder} cannot be used: {error.strerror}; name another folder (--folder)"
