"""A client of a real Mooncake store, which looks up prompts' blocks as an engine would."""

import ctypes
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Final

from kvpool.cli.faults import CliError
from kvpool.cli.planning.validating.master import LOOPBACK, free_port

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

METADATA: Final = "P2PHANDSHAKE"
"""No metadata server: Mooncake's optional one listens on every address whatever it is told."""
SEGMENT_GRAIN_BYTES: Final = 16 << 20
"""Mooncake refuses smaller segments."""
CLIENT_BUFFER_BYTES: Final = 16 << 20
DIGEST_BYTES: Final = 64
BATCH_BLOCKS: Final = 256
NO_SPACE: Final = -200
SPACE_SECONDS: Final = 5.0
"""The master makes room in the background; a put that found none succeeds soon, or something is wrong."""
RETRY_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class Found:
    """What of one prompt was there."""

    memory: int
    disk: int
    """Blocks that were on disk and not in memory."""
    prefix: int
    """Blocks before the first missing one, wherever they were."""


class RealStore:
    """Looks the blocks of prompts up and puts the missing ones; counts only blocks whose bytes are right."""

    def __init__(self, store: "MooncakeDistributedStore", block_bytes: int) -> None:
        self._store = store
        self._block_bytes = block_bytes
        self._buffer = (ctypes.c_char * (block_bytes * BATCH_BLOCKS))()
        self._view = memoryview(self._buffer).cast("B")
        start = ctypes.addressof(self._buffer)
        self._places = [start + place * block_bytes for place in range(BATCH_BLOCKS)]
        self.wrong_bytes = 0
        code = store.register_buffer(start, len(self._buffer))
        if code != 0:
            raise CliError(f"Mooncake's register_buffer of {len(self._buffer)} bytes answered {code}")

    def request(self, blocks: Sequence[int]) -> Found:
        """Look up a prompt's blocks, from the last to the first, and put those that are missing."""
        there: dict[int, bool] = {}
        backwards = list(dict.fromkeys(reversed(blocks)))
        for start in range(0, len(backwards), BATCH_BLOCKS):
            batch = backwards[start : start + BATCH_BLOCKS]
            there.update(self._get(batch))
            self._put([block for block in batch if block not in there])
        prefix = next((place for place, block in enumerate(blocks) if block not in there), len(blocks))
        memory = sum(there.values())
        return Found(memory, len(there) - memory, prefix)

    def _get(self, blocks: list[int]) -> Iterator[tuple[int, bool]]:
        """Yield the blocks that came back right, and whether they were in memory."""
        copies = self._store.batch_get_replica_desc([_key(block) for block in blocks])
        codes = self._store.batch_get_into(
            [_key(block) for block in blocks], self._places[: len(blocks)], [self._block_bytes] * len(blocks)
        )
        for place, (block, code) in enumerate(zip(blocks, codes, strict=True)):
            if code == self._block_bytes:
                start = place * self._block_bytes
                if self._view[start : start + self._block_bytes] == self._content(block):
                    yield block, any(copy.is_memory_replica() for copy in copies.get(_key(block), ()))
                else:
                    self.wrong_bytes += 1

    def _put(self, blocks: list[int]) -> None:
        limit = time.monotonic() + SPACE_SECONDS
        while blocks:
            for place, block in enumerate(blocks):
                start = place * self._block_bytes
                self._view[start : start + self._block_bytes] = self._content(block)
            codes = self._store.batch_put_from(
                [_key(block) for block in blocks],
                self._places[: len(blocks)],
                [self._block_bytes] * len(blocks),
            )
            odd = [code for code in codes if code not in (0, NO_SPACE)]
            if odd:
                raise CliError(
                    f"Mooncake refused to store a block of {self._block_bytes} bytes: code {odd[0]}"
                )
            blocks = [block for block, code in zip(blocks, codes, strict=True) if code == NO_SPACE]
            if blocks and time.monotonic() > limit:
                raise CliError(f"Mooncake found no room for a block within {SPACE_SECONDS:.0f} s")
            if blocks:
                Event().wait(RETRY_SECONDS)

    def _content(self, block: int) -> bytes:
        """Bytes that no other block has: its id's digest, repeated."""
        digest = hashlib.blake2b(str(block).encode(), digest_size=DIGEST_BYTES).digest()
        return digest * (self._block_bytes // DIGEST_BYTES)


def joined(master: str, memory_bytes: int, disk: str) -> "MooncakeDistributedStore":
    """Join a master's store with so much memory, and files in `disk` unless it is empty. Raises CliError."""
    # Files are written at heartbeats; often, as a trace runs faster here than its clock.
    os.environ.setdefault("MOONCAKE_OFFLOAD_HEARTBEAT_INTERVAL_SECONDS", "1")
    try:
        # A heavy native module that starts threads: loaded only where a store is joined.
        from mooncake.store import MooncakeDistributedStore  # noqa: PLC0415 - see the line above
    except ImportError as error:
        raise CliError(f"Mooncake's client cannot be loaded: {error}") from None
    store = MooncakeDistributedStore()
    name = f"{LOOPBACK}:{free_port()}"
    code = store.setup(
        name, METADATA, memory_bytes, CLIENT_BUFFER_BYTES, "tcp", "", master, None, bool(disk), disk
    )
    if code != 0:
        raise CliError(f"Mooncake's client could not join {master} with {memory_bytes} bytes: code {code}")
    return store


def _key(block: int) -> str:
    return f"kv-block/{block}"
