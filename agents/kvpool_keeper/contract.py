"""What agent and keeper say to each other: three small files in the unit's directory.

The directory is `<state dir>/units/<unit>-g<generation>/` (`kvpool.rules.unit_folder`):

- `spec.json`   agent → keeper: what to hold, and whether to give it back (KeeperSpec);
- `lease.json`  agent → keeper: until when the node holds its lease, and whom to ask afterwards (LeaseFile);
- `status.json` keeper → agent: how far it is, what it holds, its heartbeat (KeeperStatus);
- `mem/`        the tmpfs that the agent mounted, for units that have one.

Every file is replaced whole by a rename, so a reader sees the old or the new one, never half of one. Either
side may be killed and restarted at any time: the files say all there is to know. Unknown fields are ignored,
so that agent and keeper of neighbouring versions work together.

Times ending in `_boottime_ns` are CLOCK_BOOTTIME nanoseconds and mean something only together with the
`boot_id` beside them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

SPEC_FILE = "spec.json"
LEASE_FILE = "lease.json"
STATUS_FILE = "status.json"
MEMORY_FOLDER = "mem"

KEEPER_SILENT_SECONDS = 5.0
"""A keeper whose heartbeat is older is taken for dead or stuck; its memory is not."""

MOST_FILE_BYTES = 1 << 20
"""Of a file that is read whole; none comes near."""

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""What fits the wire, a file's size and a clock; a file that says otherwise is unreadable."""

BOOT_ID_FILE = "sys/kernel/random/boot_id"


class ContractError(ValueError):
    """A file of the unit's directory cannot be read as what it should be; the message names the file."""


class Release(StrEnum):
    """Whether the unit is to be given back, and how."""

    NONE = "None"
    DRAIN = "Drain"
    """Move the objects to other segments first, then unmount with grace."""
    NOW = "Now"
    """Unmount at once; what is in the segment is lost."""


@dataclass(frozen=True)
class MooncakeMount:
    """The master that the unit's segment joins."""

    master: str
    """address:port of its RPC."""
    admin: str = ""
    """address:port of its admin HTTP surface; empty means used bytes are unknown and nothing is drained."""
    metadata_server: str = "P2PHANDSHAKE"
    protocol: str = "tcp"
    devices: str = ""


@dataclass(frozen=True)
class KeeperSpec:
    """What one keeper holds."""

    unit: str
    generation: Count
    size_bytes: Annotated[Count, Field(ge=1)]
    file: str
    """Of the segment: relative to the unit's directory, or absolute."""
    prefault: bool
    """Whether the pages are mapped at once: true for memory, false for disks."""
    adopt: bool
    """Whether a file of the right size is taken over with its contents."""
    boot_id: str = ""
    """Of the boot that the unit does not outlive; empty for units on disk."""
    mooncake: MooncakeMount | None = None
    release: Release = Release.NONE
    unmount_at_deadline: bool = False
    """Whether the segment leaves the store when the node's lease ran out (after asking peers)."""

    def file_path(self, unit_directory: Path) -> Path:
        """Return where the segment's file is."""
        return unit_directory / self.file  # an absolute second part replaces the first


@dataclass(frozen=True)
class Peer:
    """Another member of the guard group."""

    node: str
    address: str
    """address:port where its agent answers about its lease."""


@dataclass(frozen=True)
class LeaseFile:
    """The node's lease as the agent last knew it."""

    boot_id: str
    node: str
    deadline_boottime_ns: Count
    """0 before the first Grant."""
    strict: bool
    ttl_ms: Count
    max_skew_ms: Count
    peers: tuple[Peer, ...] = ()
    """The whole guard group but this node."""
    stand: str = ""
    """The agent's own verdict (kvpool.rules.lease.Stand) when it wrote this; for people."""
    operator_epoch: Count = 0


class KeeperPhase(StrEnum):
    """How far a keeper is."""

    WAITING = "Waiting"
    """No spec yet, or one that is to be released and was never allocated."""
    ALLOCATING = "Allocating"
    MOUNTING = "Mounting"
    """Allocated; the store does not have the segment (yet, or any more)."""
    READY = "Ready"
    """Allocated, and mounted when there is a store."""
    DRAINING = "Draining"
    RELEASED = "Released"
    """Unmounted and closed on request; the file is free to be removed."""
    STOPPED = "Stopped"
    """Ended by a signal, in order; the file stays for the next keeper."""
    FAILED = "Failed"
    """Could not allocate; what was taken has been given back. `error` says why."""


@dataclass(frozen=True)
class KeeperStatus:
    """What one keeper holds and does."""

    boot_id: str
    pid: Count
    phase: KeeperPhase
    heartbeat_boottime_ns: Count
    generation: Count = 0
    release: Release = Release.NONE
    """Of the spec it acts on."""
    prepared_bytes: Count = 0
    """Allocated so far."""
    resident_bytes: Count = 0
    """Backed by pages or blocks, from the kernel."""
    used_bytes: Count | None = None
    """Holding objects, as the store says; None when unknown."""
    used_at_boottime_ns: Count = 0
    segment: Annotated[str, Field(max_length=256)] = ""
    """Name in the store; a new one for every start of a keeper."""
    te_endpoint: str = ""
    mounted: bool = False
    contents_lost_count: Count = 0
    """How often objects were lost because keeper or master started anew, since the unit was made."""
    contents_lost_boottime_ns: Count = 0
    contents_lost_reason: str = ""
    error: str = ""


File = TypeVar("File", KeeperSpec, LeaseFile, KeeperStatus)


def write_file(path: Path, content: KeeperSpec | LeaseFile | KeeperStatus, *, durable: bool = False) -> None:
    """Replace `path` whole; `durable` also waits for the disk. Raises OSError.

    Agent and keeper are different users: everybody may read the file who may enter the unit's directory.
    """
    # The adapter of the value's own class; a union's would guess.
    replace_whole(path, TypeAdapter(type(content)).dump_json(content), durable=durable, mode=0o644)


def read_file(path: Path, kind: type[File]) -> File | None:
    """Read a file of the contract; None when there is none. Raises ContractError."""
    try:
        text = read_small(path, follow=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ContractError(f"{path}: {error.strerror}") from error
    try:
        return TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ContractError(f"{path}: not a {kind.__name__}: {field}: {first['msg']}") from error


def read_small(path: Path, *, follow: bool) -> bytes:
    """Read a regular file whole. Raises OSError, also for anything else: a pipe would block its reader.

    `follow` allows a link, as mounted Secrets are; in a folder that another user owns it may lead anywhere.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as stream:  # noqa: PTH123 - closes the descriptor opened with flags
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        content = stream.read(MOST_FILE_BYTES + 1)
    if len(content) > MOST_FILE_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MOST_FILE_BYTES} bytes", str(path))
    return content


def replace_whole(path: Path, content: bytes, *, durable: bool, mode: int = 0o600) -> None:
    """Write beside `path` and rename over it; `durable` fsyncs file and folder. Raises OSError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    # Left by a killed process of the same pid, or put there by another user for us to write through.
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "wb") as stream:  # noqa: PTH123 - closes the descriptor opened with a mode
            stream.write(content)
            stream.flush()
            if durable:
                os.fsync(descriptor)
        beside.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the entries of `folder` are on the disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def boottime_ns() -> int:
    """Return CLOCK_BOOTTIME: does not jump, and counts suspended time."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def boot_id(proc: Path = Path("/proc")) -> str:
    """Return the kernel's boot id. Raises OSError."""
    return (proc / BOOT_ID_FILE).read_text().strip()
