"""SSD capacity as fixed-size files in folders that the node's administrator named."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable
from pathlib import Path

import structlog

from kvpool_agent import actions
from kvpool_agent.backends.base import file_reality, taken_by
from kvpool_agent.places import LABEL_PREFIX, SEGMENT_FILE
from kvpool_agent.units import (
    Action,
    ActionKind,
    Finding,
    KeeperView,
    Reality,
    Record,
    RecordPhase,
    Source,
    UnitPlan,
)

log = structlog.get_logger()


class FileBackend:
    """Binds files; they outlive a reboot."""

    name = "file"

    def __init__(self, folders: Iterable[Path], units: Path) -> None:
        self._folders = tuple(folders)
        self._units = units

    def discover(self) -> tuple[Source, ...]:
        """Return one source a folder; a folder that is not there, or cannot be read, is none."""
        found = []
        for folder in self._folders:
            try:
                if folder.is_dir():
                    found.append(self._source(folder))
            except OSError as error:
                log.warning("folder cannot be read", folder=str(folder), error=str(error))
        return tuple(found)

    def _source(self, folder: Path) -> Source:
        room = os.statvfs(folder)
        return Source(
            key=f"file/{_filesystem(folder)}:{folder}",
            tier="SSD",
            backend=self.name,
            numa_node=-1,
            capacity_bytes=room.f_blocks * room.f_frsize,
            free_bytes=room.f_bavail * room.f_frsize,
        )

    def refuse(self, unit: UnitPlan, others: Iterable[Record]) -> str:
        """Refuse foreign folders, files that somebody holds, and what would eat the reserve."""
        folder = Path(unit.path)
        if folder not in self._folders:
            known = ", ".join(map(str, self._folders)) or "none"
            return f"path {unit.path!r} is not a folder of this agent (--file-path); those are: {known}"
        if not folder.is_dir():
            return f"path {folder} is not a folder"
        others = tuple(others)
        misplaced = _other_medium(folder, others)
        if misplaced:
            return misplaced
        room = os.statvfs(folder)
        free = room.f_bavail * room.f_frsize
        if unit.size_bytes + unit.reserve_bytes > free:
            return (
                f"{unit.size_bytes} bytes and {unit.reserve_bytes} in reserve do not fit: "
                f"{free} are free on {folder}"
            )
        return taken_by(self.draft(unit, self._units / unit.key, ""), others)

    def draft(self, unit: UnitPlan, directory: Path, boot_id: str) -> Record:
        """A folder of its own below the administrator's, for one file."""
        place = Path(unit.path) / f"{LABEL_PREFIX}{unit.key}"
        return Record(
            unit=unit,
            phase=RecordPhase.PREPARING,
            boot_id=boot_id,
            actions=(
                Action(ActionKind.MAKE_FOLDER, str(directory)),
                Action(ActionKind.MAKE_FOLDER, str(place)),
            ),
            at=0,
            file=str(place / SEGMENT_FILE),
            volatile=not unit.adopt,
            placement_bound=False,
        )

    def read_back(self, record: Record) -> Record:
        """Note which filesystem the unit is on."""
        return dataclasses.replace(record, medium=_medium(Path(record.unit.path)))

    def look(self, record: Record, keeper: KeeperView) -> Reality:
        """Check the file and the reserve."""
        findings: list[Finding] = []
        place = Path(record.file).parent
        missing = _missing(record)
        if missing:
            return Reality(exists=True, unseen=True, findings=(Finding("MediumMissing", missing),))
        if not place.is_dir():
            return Reality(exists=False, findings=(Finding("FolderGone", f"{place} is not there any more"),))
        room = os.statvfs(place)
        free = room.f_bavail * room.f_frsize
        if free < record.unit.reserve_bytes:
            findings.append(
                Finding(
                    "ReserveShort",
                    f"{free} bytes are free on {place}, {record.unit.reserve_bytes} are to stay free",
                    degrades=False,
                )
            )
        return file_reality(record, findings)

    def remains(self) -> tuple[str, ...]:
        """Keys of the folders that carry our name."""
        return tuple(
            path.name.removeprefix(LABEL_PREFIX)
            for folder in self._folders
            if folder.is_dir()
            for path in sorted(folder.glob(f"{LABEL_PREFIX}*"))
        )


def _missing(record: Record) -> str:
    """Say that a unit's folder is not there or on another filesystem; empty when it is the unit's own.

    A file that is there needs no proof: some filesystems have another id after a reboot.
    """
    folder = Path(record.unit.path)
    if not folder.is_dir():
        return f"{folder} is not there; the unit is kept until it is mounted again"
    if not record.medium or Path(record.file).exists():
        return ""
    medium = _medium(folder)
    if medium == record.medium:
        return ""
    return f"{folder} is on {medium}, bound was {record.medium}; the unit is kept until that is mounted again"


def _other_medium(folder: Path, others: Iterable[Record]) -> str:
    """Say which unit of the same folder is on a filesystem that is not mounted now; empty when none."""
    for other in others:
        kept = other.phase not in (RecordPhase.RELEASED, RecordPhase.PREPARING)
        if kept and Path(other.unit.path) == folder and (missing := _missing(other)):
            return f"unit {other.unit.name} generation {other.unit.generation}: {missing}"
    return ""


def _medium(folder: Path) -> str:
    """Name the filesystem that `folder` is on, so that it is known again after a reboot. Raises OSError.

    st_dev would not do: the kernel hands device numbers out anew.
    """
    mount = _mount_of(folder)
    where = f"{mount.kind} {mount.label}" if mount else "unknown"
    return f"{where} id {os.statvfs(folder).f_fsid:x}"


def _mount_of(folder: Path) -> actions.Mount | None:
    """Return the topmost mount that `folder` is on. Raises OSError."""
    deepest = None
    for mount in actions.mounts():
        deeper = deepest is None or len(mount.path) >= len(deepest.path)
        if deeper and folder.resolve().is_relative_to(mount.path):
            deepest = mount
    return deepest


def _filesystem(folder: Path) -> str:
    """Return the type of the filesystem that `folder` is on."""
    mount = _mount_of(folder)
    return mount.kind if mount else "unknown"
