"""What a backend is: everything the agent must know about one medium."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from kvpool_agent.units import Finding, KeeperView, Reality, Record, Source, UnitPlan


class Backend(Protocol):
    """One medium. All methods block for milliseconds at most and are called from one thread.

    Preparing is `refuse`, then `draft` into the journal, then its actions one by one, then `read_back`.
    Releasing is the same for every medium: the file is unlinked and the actions are undone in reverse.
    """

    name: str

    def discover(self) -> tuple[Source, ...]:
        """Return what units could be bound from now. Raises OSError."""
        ...

    def refuse(self, unit: UnitPlan, others: Iterable[Record]) -> str:
        """Say why the unit cannot be bound now, with both figures; empty when it can."""
        ...

    def draft(self, unit: UnitPlan, directory: Path, boot_id: str) -> Record:
        """Return the unit's first record: the place of its file and the actions that make it. Pure."""
        ...

    def read_back(self, record: Record) -> Record:
        """Return the record with what the kernel made of its actions. Raises OSError."""
        ...

    def look(self, record: Record, keeper: KeeperView) -> Reality:
        """Verify the unit and read its usage, without touching its contents. Raises OSError."""
        ...

    def remains(self) -> tuple[str, ...]:
        """Return the keys of all objects on this medium that carry our name, with or without record."""
        ...


def file_reality(record: Record, findings: list[Finding]) -> Reality:
    """Look at the segment's file: size, blocks and identity. Raises OSError."""
    try:
        found = Path(record.file).lstat()
    except FileNotFoundError:
        return Reality(exists=True, findings=tuple(findings))
    identity = f"{found.st_dev}:{found.st_ino}"
    resident = found.st_blocks * 512
    if record.device_inode and identity != record.device_inode:
        findings.append(
            Finding("FileReplaced", f"{record.file} is {identity}, bound was {record.device_inode}")
        )
    elif record.device_inode and min(resident, found.st_size) < record.unit.size_bytes:
        findings.append(
            Finding(
                "BytesMissing",
                f"{record.file} holds {min(resident, found.st_size)} of {record.unit.size_bytes} bytes",
            )
        )
    return Reality(
        exists=True,
        resident_bytes=resident,
        file_bytes=found.st_size,
        device_inode=identity,
        findings=tuple(findings),
    )


def taken_by(record: Record, others: Iterable[Record]) -> str:
    """Say which unit holds the path or file that `record` wants; empty when none does. Raises OSError."""
    wanted = Path(record.file)
    identity = ""
    if wanted.exists():
        found = wanted.stat()
        identity = f"{found.st_dev}:{found.st_ino}"
    for other in others:
        if other.key == record.key:
            continue
        if Path(other.file).resolve() == wanted.resolve() or (identity and identity == other.device_inode):
            return f"{wanted} is bound by unit {other.unit.name} generation {other.unit.generation}"
    if wanted.exists() or wanted.parent.is_symlink():
        return f"{wanted} exists already and no record says it is kvpool's; move it away"
    return ""
