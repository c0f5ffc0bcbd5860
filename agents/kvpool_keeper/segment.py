"""The memory of one unit: its file, allocated to the last byte, mapped and locked against a second keeper."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CHUNK_BYTES = 64 << 20
MADV_POPULATE_WRITE = 23  # Linux 5.14; Python has no name for it
BLOCK_BYTES = 512  # the unit of st_blocks, whatever the filesystem's block is


class SegmentError(Exception):
    """The unit's memory could not be had; the message names the file and both figures."""


@dataclass(frozen=True)
class Segment:
    """An allocated file, held open and locked while this lives."""

    path: Path
    size_bytes: int
    descriptor: int
    mapping: mmap.mmap | None
    adopted: bool

    def resident_bytes(self) -> int:
        """Return the bytes backed by pages or blocks. Raises OSError."""
        return os.fstat(self.descriptor).st_blocks * BLOCK_BYTES

    def close(self) -> None:
        """Unmap, unlock and close; the file stays."""
        if self.mapping is not None:
            self.mapping.close()
        os.close(self.descriptor)


def allocate(
    path: Path, size_bytes: int, *, adopt: bool, prefault: bool, progress: Callable[[int], None]
) -> Segment:
    """Take `size_bytes` at `path`, in chunks; `progress` gets the bytes done after each.

    A file that is there is taken over: with its contents when `adopt` and the size agree, else emptied first.
    Raises SegmentError; a new file that does not fit leaves nothing behind, one with contents keeps them.
    """
    descriptor, is_new = _open(path)
    try:
        _lock(descriptor, path)
        adopted = adopt and not is_new and os.fstat(descriptor).st_size == size_bytes
        if not adopted:
            os.ftruncate(descriptor, 0)
        try:
            _fill(descriptor, path, size_bytes, progress, kept=adopted)
            mapping = _map(descriptor, size_bytes) if prefault else None
        except BaseException:  # whatever it was, what was taken is given back; raised on
            if not adopted:
                os.ftruncate(descriptor, 0)  # gives every page back; the empty file may stay
            raise
    except (OSError, OverflowError) as error:
        os.close(descriptor)
        raise SegmentError(f"{path}: {size_bytes} bytes cannot be held: {error}") from error
    except BaseException:  # a cancelled or failed allocation must not keep the lock; raised on
        os.close(descriptor)
        raise
    return Segment(path, size_bytes, descriptor, mapping, adopted)


def _open(path: Path) -> tuple[int, bool]:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, flags)
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return descriptor, False
            os.close(descriptor)
            raise SegmentError(f"{path}: is not a regular file; move it away")
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), True
    except OSError as error:
        raise SegmentError(f"{path}: cannot be opened: {error.strerror}") from error
    except ValueError as error:
        raise SegmentError(f"{str(path)!r}: is no path of a file: {error}") from error


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise SegmentError(
            f"{path}: another keeper holds it; a unit has one keeper, end the other"
        ) from error


def _fill(
    descriptor: int, path: Path, size_bytes: int, progress: Callable[[int], None], *, kept: bool
) -> None:
    done = 0
    while done < size_bytes:
        step = min(CHUNK_BYTES, size_bytes - done)
        try:
            os.posix_fallocate(descriptor, done, step)
        except OSError as error:
            what = "no space" if error.errno == errno.ENOSPC else error.strerror
            raise SegmentError(
                f"{path}: {what} for {size_bytes} bytes: {done} bytes were allocated "
                f"and {'the file is kept' if kept else 'given back'}; "
                "shrink the unit or free the medium"
            ) from error
        done += step
        progress(done)


def _map(descriptor: int, size_bytes: int) -> mmap.mmap:
    """Map the whole file, every page at once, so that placement can be read from numa_maps."""
    mapping = mmap.mmap(descriptor, size_bytes, mmap.MAP_SHARED)
    for start in range(0, size_bytes, CHUNK_BYTES):
        try:
            mapping.madvise(MADV_POPULATE_WRITE, start, min(CHUNK_BYTES, size_bytes - start))
        except OSError as error:
            if error.errno != errno.EINVAL:  # an old kernel; the pages are allocated all the same
                mapping.close()
                raise SegmentError(f"{size_bytes} bytes cannot be mapped: {error.strerror}") from error
    return mapping
