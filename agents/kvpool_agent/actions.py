"""Does and undoes the few things that preparing a unit does to the machine."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
from dataclasses import dataclass
from pathlib import Path

from kvpool_agent.units import Action, ActionKind

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
_libc = ctypes.CDLL(None, use_errno=True)


class ActionError(Exception):
    """The kernel refused; the message names the path and the reason."""


@dataclass(frozen=True)
class Mount:
    """One line of mountinfo."""

    path: str
    kind: str
    label: str
    options: str
    """Of the filesystem, as the kernel shows them."""


def do(action: Action, owner: tuple[int, int]) -> None:
    """Do the action; done already is fine. New folders belong to `owner` (uid, gid). Raises ActionError."""
    path = Path(action.path)
    try:
        if action.kind is ActionKind.MAKE_FOLDER:
            _make_folder(path, owner)
        elif find_mount(path) is None:
            mount_tmpfs(path, action.label, action.options)
    except OSError as error:
        raise ActionError(f"{action.kind} {path}: {error.strerror}") from error


def undo(action: Action) -> None:
    """Undo the action as far as it was done; what is in use or not ours stays. Raises ActionError."""
    path = Path(action.path)
    try:
        if action.kind is ActionKind.MAKE_FOLDER:
            _remove_folder(path)
        else:
            mounted = find_mount(path)
            if mounted is not None and mounted.label == action.label:
                unmount(path)
    except OSError as error:
        raise ActionError(f"undoing {action.kind} {path}: {error.strerror}") from error


def mount_tmpfs(path: Path, label: str, options: str) -> None:
    """Mount a tmpfs. Raises OSError with the kernel's reason."""
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
    _check(_libc.mount(label.encode(), os.fsencode(path), b"tmpfs", flags, options.encode()), path)


def unmount(path: Path) -> None:
    """Unmount; EBUSY while anything in it is open or mapped. Raises OSError."""
    _check(_libc.umount2(os.fsencode(path), 0), path)


def mounts() -> tuple[Mount, ...]:
    """Return what is mounted in this namespace. Raises OSError."""
    return tuple(_parse_mount(line) for line in _mountinfo().split("\n") if line)


def _mountinfo() -> str:
    """Anybody's mount may have any bytes in its name, no UTF-8 too; only line feeds end a line of it."""
    return Path("/proc/self/mountinfo").read_text(errors="surrogateescape")


def find_mount(path: Path) -> Mount | None:
    """Return the topmost mount at exactly `path`. Raises OSError."""
    found = [mount for mount in mounts() if mount.path == str(path)]
    return found[-1] if found else None


def mappers(files: frozenset[tuple[int, int]], proc: Path = Path("/proc")) -> tuple[int, ...]:
    """Return the pids that map or hold open any of `files`, given as (st_dev, st_ino).

    Processes that may not be looked into are skipped: a mount's own EBUSY still protects them.
    """
    processes = (folder for folder in proc.iterdir() if folder.name.isdigit())
    return tuple(
        sorted(
            int(folder.name) for folder in processes if _maps_any(folder, files) or _opens_any(folder, files)
        )
    )


def is_locked(file: Path) -> bool:
    """Whether a keeper holds its lock on `file`; seen from other pid namespaces too. Raises OSError."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _maps_any(process: Path, files: frozenset[tuple[int, int]]) -> bool:
    with contextlib.suppress(OSError):
        for line in (process / "maps").read_text(errors="replace").split("\n"):
            fields = line.split(maxsplit=5)
            if len(fields) > 4 and fields[4] != "0":
                major, _, minor = fields[3].partition(":")
                if (os.makedev(int(major, 16), int(minor, 16)), int(fields[4])) in files:
                    return True
    return False


def _opens_any(process: Path, files: frozenset[tuple[int, int]]) -> bool:
    with contextlib.suppress(OSError):
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                found = descriptor.stat()
                if (found.st_dev, found.st_ino) in files:
                    return True
    return False


def _make_folder(path: Path, owner: tuple[int, int]) -> None:
    try:
        path.mkdir(mode=0o750)
    except FileExistsError:
        if path.is_symlink() or not path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "exists and is not a folder") from None
    if os.geteuid() == 0:
        os.chown(path, *owner)


def _remove_folder(path: Path) -> None:
    try:
        path.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EBUSY):
            raise


def _parse_mount(line: str) -> Mount:
    # 36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw,errors=continue
    before, _, after = line.partition(" - ")
    kind, label, options = (*after.split(" ", 2), "", "")[:3]
    return Mount(_plain(before.split(" ")[4]), kind, _plain(label), options)


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _check(result: int, path: Path) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(path))
