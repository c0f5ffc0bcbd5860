"""Joins a Mooncake store as a client, with or without memory of its own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

SMALLEST_SEGMENT_BYTES = 16 << 20
"""`setup` refuses a smaller own segment with -600 (seen with 0.3.13)."""

METADATA = "P2PHANDSHAKE"
"""No metadata server: the optional HTTP one listens on every address whatever it is told."""


class StoreUnavailableError(RuntimeError):
    """The store could not be joined."""


def join_store(
    *,
    local_name: str,
    master: str,
    segment_bytes: int,
    buffer_bytes: int,
    deadline_seconds: float = 10.0,
) -> MooncakeDistributedStore:
    """Join the store of `master` ("host:port") as `local_name` ("host:port", also the segment's name).

    `segment_bytes` is the memory brought along, 0 for none; `buffer_bytes` is the client's own buffer.
    Raises StoreUnavailableError; a client that failed to set up must not be used, it would crash.
    """
    # A heavy native module that starts threads: only processes that join a store load it.
    from mooncake.store import MooncakeDistributedStore  # noqa: PLC0415 - see the line above

    if 0 < segment_bytes < SMALLEST_SEGMENT_BYTES:
        raise StoreUnavailableError(
            f"{local_name}: a segment of {segment_bytes} bytes is below Mooncake's smallest, "
            f"{SMALLEST_SEGMENT_BYTES}; bring at least that much, or 0"
        )
    limit = time.monotonic() + deadline_seconds
    while True:
        store = MooncakeDistributedStore()
        code = store.setup(local_name, METADATA, segment_bytes, buffer_bytes, "tcp", "", master)
        if code == 0:
            return store
        if time.monotonic() > limit:
            raise StoreUnavailableError(f"{local_name}: setup against master {master} answered {code}")
        time.sleep(0.2)
