"""One unit's membership in a Mooncake store: joins as a client of its own and mounts the unit's file."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from kvpool_keeper.contract import MooncakeMount

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

BUFFER_BYTES = 1 << 20
CONNECT_SECONDS = 1.0


class StoreError(Exception):
    """The store could not be joined or refused the segment; the message names master and answer."""


class StoreMount:
    """A client of one master that brings one segment, named `<address>:<port>`.

    The name is new for every StoreMount: a master keeps the rows of a dead client for its TTL, and two rows
    of one name are counted together. After a master restart the client mounts again by itself.
    """

    def __init__(self, target: MooncakeMount, address: str) -> None:
        self.segment = f"{address}:{_free_port()}"
        self._target = target
        self._store: MooncakeDistributedStore | None = None
        self._segment_ids: list[str] = []

    def mount(self, path: Path, size_bytes: int) -> None:
        """Join the store and mount the file. Blocks for milliseconds. Raises StoreError."""
        self._check_reachable()
        # A heavy native module that starts threads; a keeper without a store never loads it.
        from mooncake.store import MooncakeDistributedStore  # noqa: PLC0415 - see the line above

        target = self._target
        try:
            self._join(MooncakeDistributedStore(), path, size_bytes)
        except (RuntimeError, TypeError, ValueError, KeyError) as error:  # what native code raises
            raise StoreError(f"joining the store of master {target.master}: {error}") from error

    def _join(self, store: MooncakeDistributedStore, path: Path, size_bytes: int) -> None:
        target = self._target
        code = store.setup(
            self.segment,
            target.metadata_server,
            0,
            BUFFER_BYTES,
            target.protocol,
            target.devices,
            target.master,
        )
        if code != 0:  # such a client must not be used any further, not even closed
            raise StoreError(f"joining the store of master {target.master} as {self.segment} answered {code}")
        answer = store.mount_segment(str(path), size_bytes, 0, target.protocol, "")
        if answer["ret"] != 0:
            store.close()
            raise StoreError(
                f"mounting {path} ({size_bytes} bytes) at master {target.master} answered {answer['ret']}"
            )
        self._store = store
        self._segment_ids = list(answer["segment_ids"])

    def unmount(self, grace_seconds: int) -> int:
        """Take the segment out; its objects stay readable for `grace_seconds`, which the caller waits.

        Returns Mooncake's code, 0 for done; a master that is away makes it fail, which loses nothing.
        """
        if self._store is None:
            return 0
        code: int = self._store.unmount_segment(self._segment_ids, grace_seconds)
        return code

    def close(self) -> None:
        """Leave the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    def _check_reachable(self) -> None:
        """Ask for a connection first: joining an absent master blocks the whole process for seconds."""
        host, _, port = self._target.master.rpartition(":")
        try:
            socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
        except (OSError, ValueError) as error:
            raise StoreError(f"master {self._target.master} does not answer: {error}") from error


def _free_port() -> int:
    """Return a port that nothing listens on; it only makes the segment's name unique."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
        return port
