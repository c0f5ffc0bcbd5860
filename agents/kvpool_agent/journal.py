"""The write-ahead journal: one JSON record a unit, on the disk before anything is done to the machine."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import structlog
from pydantic import TypeAdapter, ValidationError

from kvpool_agent.units import Record
from kvpool_keeper.contract import read_small, replace_whole, sync_folder

log = structlog.get_logger()

RECORD_VERSION = 1
_RECORD = TypeAdapter(Record)


class Journal:
    """Records of all units, by key. Only one agent opens it at a time (see Places.lock).

    A record that cannot be read is moved to the quarantine folder, counted and named in `unreadable`; nothing
    that it may stand for is touched.
    """

    def __init__(self, folder: Path, quarantine: Path) -> None:
        self._folder = folder
        self._quarantine = quarantine
        self._records: dict[str, Record] = {}
        self.unreadable: tuple[str, ...] = ()

    @property
    def records(self) -> Mapping[str, Record]:
        """The records as last written."""
        return MappingProxyType(self._records)

    def load(self) -> None:
        """Read all records; those that are unreadable go to the quarantine. Raises OSError."""
        self._records.clear()
        for unfinished in self._folder.glob(".*.json.*"):
            with contextlib.suppress(OSError):  # not ours then, and in nobody's way
                unfinished.unlink()  # a write that never was renamed: nothing was done after it
        for path in sorted(self._folder.glob("*.json")):
            record = self._read(path)
            if record is not None:
                self._records[record.key] = record

    def write(self, record: Record) -> None:
        """Put the record on the disk; returns when it is there. Raises OSError."""
        replace_whole(self._path(record.key), _RECORD.dump_json(record), durable=True)
        self._records[record.key] = record

    def forget(self, key: str) -> None:
        """Remove a record of which nothing is left on the machine. Raises OSError."""
        self._path(key).unlink(missing_ok=True)
        sync_folder(self._folder)
        self._records.pop(key, None)

    def set_aside(self, key: str, why: str) -> None:
        """Move a record that this agent does not understand to the quarantine. Raises OSError."""
        self._set_aside(self._path(key), why)
        self._records.pop(key, None)

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _read(self, path: Path) -> Record | None:
        try:
            content = json.loads(read_small(path, follow=False))
            if not isinstance(content, dict) or content.get("version") != RECORD_VERSION:
                raise ValueError(f"not a record of version {RECORD_VERSION}")  # noqa: TRY301 - one way out
            record = _RECORD.validate_python(content)
            if f"{record.key}.json" != path.name:
                raise ValueError(f"its name is not that of its unit, {record.key}")  # noqa: TRY301 - as above
        except (ValueError, ValidationError, RecursionError, OSError) as error:
            self._set_aside(path, str(error).splitlines()[0])
            return None
        return record

    def _set_aside(self, path: Path, why: str) -> None:
        aside = self._quarantine / f"{path.name}.{time.time_ns()}"
        try:
            path.replace(aside)
        except OSError as error:
            why, aside = f"{why}; it stays, it cannot be moved: {error.strerror}", path
        self.unreadable = (*self.unreadable, path.name)
        log.error(
            "journal record is unreadable and was set aside", record=path.name, kept=str(aside), why=why
        )
