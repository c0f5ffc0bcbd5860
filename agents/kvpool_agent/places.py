"""Where the agent keeps what must outlive it: the layout of its state directory."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import Field, TypeAdapter, ValidationError

from kvpool.rules.unit_folder import unit_directory_name
from kvpool_keeper.contract import Count, read_small, replace_whole

log = structlog.get_logger()

_INCARNATION: TypeAdapter[int] = TypeAdapter(Annotated[Count, Field(le=2**62)])

LOCK_FILE, INCARNATION_FILE = "agent.lock", "incarnation.json"
EPOCH_FILE, LEASE_FILE, SEATS_FILE = "epoch.json", "lease.json", "seats.json"
LABEL_PREFIX = "kvpool-"
"""Begins the name of everything the agent makes outside its state directory, and of its tmpfs mounts."""
SEGMENT_FILE = "segment"


class SecondAgentError(Exception):
    """Another agent works in this state directory."""


@dataclass(frozen=True)
class Places:
    """The state directory: units/, journal/, quarantine/, identity/ and a few files."""

    root: Path

    @property
    def units(self) -> Path:
        """One directory a unit, shared with its keeper."""
        return self.root / "units"

    @property
    def journal(self) -> Path:
        """One record a unit."""
        return self.root / "journal"

    @property
    def quarantine(self) -> Path:
        """Records that could not be read; kept for people."""
        return self.root / "quarantine"

    @property
    def identity(self) -> Path:
        """Private key, certificate and authorities."""
        return self.root / "identity"

    @property
    def trial(self) -> Path:
        """Where the agent tries at its start what it may mount; kept, so that a full disk does not matter."""
        return self.root / "trial"

    def unit(self, name: str, generation: int) -> Path:
        """Return the directory of one unit."""
        return self.units / unit_directory_name(name, generation)

    def make(self) -> None:
        """Make the folders; others may pass through, but only read what is theirs. Raises OSError."""
        self.root.mkdir(parents=True, exist_ok=True)
        for folder in (self.units, self.journal, self.quarantine, self.trial):
            folder.mkdir(exist_ok=True)
        self.identity.mkdir(mode=0o700, exist_ok=True)

    def clear(self) -> None:
        """Remove all that `make` and agents put here; what others put beside it stays, and so does the root.

        Unfinished writes of agents that were killed go too. Raises OSError, as for a unit's folder with
        anything in it: that is removed with its unit only.
        """
        for folder in self.units.iterdir() if self.units.is_dir() else ():
            folder.rmdir()
        for folder in (self.journal, self.quarantine, self.identity, self.trial):
            for file in folder.iterdir() if folder.is_dir() else ():
                file.unlink()
        for folder in (self.units, self.journal, self.quarantine, self.identity, self.trial):
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()
        for name in (EPOCH_FILE, LEASE_FILE, SEATS_FILE, INCARNATION_FILE, LOCK_FILE):
            for file in (*self.root.glob(f".{name}.*"), self.root / name):
                file.unlink(missing_ok=True)

    def lock(self) -> int:
        """Become the only agent here, for as long as the descriptor is open. Raises SecondAgentError."""
        descriptor = os.open(self.root / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise SecondAgentError(
                f"{self.root}: another agent holds agent.lock; one node has one agent, end the other first"
            ) from error
        return descriptor

    def next_incarnation(self) -> int:
        """Return a number greater than that of every earlier start on this host, and remember it.

        Milliseconds of the wall clock, or one more than the last when the clock went back.
        """
        path = self.root / INCARNATION_FILE
        last = 0
        with contextlib.suppress(OSError, ValidationError):  # first start: the clock alone has to do
            last = _INCARNATION.validate_json(read_small(path, follow=False))
        incarnation = max(last + 1, time.time_ns() // 1_000_000)
        try:
            replace_whole(path, json.dumps(incarnation).encode(), durable=True)
        except OSError as error:  # a full disk; the lease matters more, and clocks rarely go back
            log.warning("incarnation cannot be kept, the clock has to do", error=str(error))
        return incarnation
