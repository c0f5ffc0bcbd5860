"""Blocks in a real Mooncake, put and read by a client of its own that brings no memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from demo.neighbours.store import join_store
from devcluster.ports import free_port
from tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

BLOCK = b"k" * 65536
BLOCKS = 64
MOST_IN_FLIGHT_BYTES = 16 << 20
STORED_SECONDS = 30.0
PAUSE_SECONDS = 0.05


@contextmanager
def client_of(master: str, address: str) -> Iterator[MooncakeDistributedStore]:
    """Join the store of `master` (host:port) from `address`; everything is taken out of it in the end."""
    client = join_store(
        local_name=f"{address}:{free_port()}",
        master=master,
        segment_bytes=0,
        buffer_bytes=MOST_IN_FLIGHT_BYTES,
    )
    try:
        yield client
    finally:
        client.remove_all(True)
        client.close()


def fill(client: MooncakeDistributedStore, blocks: int = BLOCKS) -> list[str]:
    """Put some blocks and return their keys."""
    keys = [f"block-{index}" for index in range(blocks)]
    for key in keys:
        # Segments of keepers that an earlier test killed stay with the master until its TTL.
        wait_until(partial(_stored, client, key), STORED_SECONDS, f"{key} to be stored")
    return keys


def _stored(client: MooncakeDistributedStore, key: str) -> bool:
    return bool(client.put(key, BLOCK) == 0)


class Reader:
    """Reads blocks over and over until it is stopped; counts what did not come back right."""

    def __init__(self, client: MooncakeDistributedStore, keys: Sequence[str]) -> None:
        self._client, self._keys = client, keys
        self._over = threading.Event()
        self.right, self.wrong = 0, 0
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)

    def _read(self) -> None:
        while True:
            for key in self._keys:
                ok = self._client.get(key) == BLOCK
                self.right, self.wrong = self.right + ok, self.wrong + (not ok)
            if self._over.wait(PAUSE_SECONDS):
                return
