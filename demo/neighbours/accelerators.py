"""The file of simulated accelerators: written and broken by the demonstration, obeyed by mock engines.

The agent's simulated device provider reads the same file and describes its form. People may edit it by hand.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvpool.api.supernode import EvidenceClass

BROKEN = frozenset({EvidenceClass.FATAL.value, EvidenceClass.LOST.value})


@dataclass(frozen=True)
class Accelerator:
    """One simulated device; `holder_pod_uid` is the pod that has it, empty for none."""

    id: str
    uuid: str
    holder_pod_uid: str = ""


class AcceleratorFile:
    """One host's accelerators. Writes replace the whole file at once; one writer at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, accelerators: Sequence[Accelerator]) -> None:
        """Write the file with accelerators that have no fault."""
        entries = [
            {"id": one.id, "uuid": one.uuid, "holderPodUid": one.holder_pod_uid, "faults": []}
            for one in accelerators
        ]
        self._replace(entries)

    def add_fault(self, accelerator: str, *, source: str, code: str, evidence_class: EvidenceClass) -> None:
        """Let the accelerator show one more fault. Raises KeyError when the file has no such one."""
        fault = {"source": source, "code": code, "class": evidence_class.value}
        self._change(accelerator, lambda entry: entry["faults"].append(fault))

    def clear_faults(self, accelerator: str) -> None:
        """Make the accelerator whole again. Raises KeyError when the file has no such one."""
        self._change(accelerator, lambda entry: entry["faults"].clear())

    def _change(self, accelerator: str, change: Callable[[dict[str, Any]], None]) -> None:
        entries = json.loads(self.path.read_text())["devices"]
        for entry in entries:
            if entry["id"] == accelerator:
                entry.setdefault("faults", [])
                change(entry)
                self._replace(entries)
                return
        raise KeyError(f"{self.path}: no accelerator {accelerator!r}")

    def _replace(self, entries: Sequence[dict[str, Any]]) -> None:
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        beside.write_text(json.dumps({"devices": list(entries)}, indent=2) + "\n")
        beside.rename(self.path)


class AcceleratorWatch:
    """Tells whether the accelerators of one engine work; reads the file only when it changed.

    A file that is missing or unreadable breaks nothing.
    """

    def __init__(self, path: Path, accelerators: Sequence[str]) -> None:
        self._path = path
        self._accelerators = frozenset(accelerators)
        self._stamp: tuple[int, int, int] | None = None
        self._work = True

    def work(self) -> bool:
        """Whether none of the accelerators shows a fault that is fatal."""
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._stamp:
                self._stamp = stamp
                self._work = not self._any_broken(json.loads(self._path.read_text()))
        except (OSError, ValueError, KeyError, TypeError):
            self._work = True
        return self._work

    def _any_broken(self, content: dict[str, Any]) -> bool:
        return any(
            fault["class"] in BROKEN
            for entry in content["devices"]
            if entry["id"] in self._accelerators
            for fault in entry.get("faults", ())
        )
