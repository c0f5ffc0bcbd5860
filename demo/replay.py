"""Replays a block trace against a real store, and counts the blocks whose bytes came back right.

Run as `python -m demo.replay --master HOST:PORT --local-name HOST:PORT`. Every block of every request is
looked up, and put when it was missing; one key a block. Requests arrive in bursts, so the blocks of
neighbouring requests travel in one batch; a block that occurs twice in a batch is looked up again after it
was put for the first. Nobody waits for the trace's arrival times.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import hashlib
import json
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from demo.neighbours.store import join_store
from demo.trace import DEFAULT_TRACE, TracedRequest, TraceUnreadableError, read_trace, reuse_ceiling
from kvpool.api.quantity import parse_quantity

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

BLOCKS_A_BATCH = 512
CLIENT_BUFFER_BYTES = 16 << 20
DIGEST_BYTES = 64
NO_SPACE = -200
NOT_FOUND = -704
SPACE_RETRY_SECONDS = 0.05
"""The master evicts in the background; a put refused for lack of space succeeds a moment later."""


@dataclass
class ReplayCounts:
    """What a replay did; `hits` are blocks whose bytes came back right."""

    requests: int = 0
    lookups: int = 0
    hits: int = 0
    wrong_bytes: int = 0
    failed_gets: int = 0
    stored: int = 0
    no_space: int = 0
    failed_puts: int = 0
    seconds: float = 0.0

    @property
    def hit_rate(self) -> float:
        """Hits over all block look-ups."""
        return self.hits / self.lookups if self.lookups else 0.0


Progress = Callable[[ReplayCounts], None]


class Replay:
    """A client without memory of its own that moves blocks of `block_bytes` in batches.

    `block_bytes` is a multiple of 64. The buffer that the store reads and writes is registered once.
    """

    def __init__(self, store: MooncakeDistributedStore, *, block_bytes: int) -> None:
        if block_bytes <= 0 or block_bytes % DIGEST_BYTES:
            raise ValueError(f"a block of {block_bytes} bytes: give a positive multiple of {DIGEST_BYTES}")
        self._store = store
        self._block_bytes = block_bytes
        self._buffer = (ctypes.c_char * (block_bytes * BLOCKS_A_BATCH))()
        self._view = memoryview(self._buffer).cast("B")
        self._places = [ctypes.addressof(self._buffer) + i * block_bytes for i in range(BLOCKS_A_BATCH)]
        code = store.register_buffer(self._places[0], len(self._buffer))
        if code != 0:
            raise RuntimeError(f"register_buffer of {len(self._buffer)} bytes answered {code}")

    def empty_store(self) -> None:
        """Remove every object, leased ones too. Raises RuntimeError when the store refuses."""
        removed = self._store.remove_all(True)
        if removed < 0:
            raise RuntimeError(f"remove_all answered {removed}")

    def run(self, requests: Sequence[TracedRequest], *, progress: Progress | None = None) -> ReplayCounts:
        """Replay the requests in order; `progress` is called after each batch."""
        counts = ReplayCounts()
        ends = list(accumulate(len(request.block_ids) for request in requests))
        blocks = chain.from_iterable(request.block_ids for request in requests)
        started = time.monotonic()
        while batch := list(islice(blocks, BLOCKS_A_BATCH)):
            for wave in _waves(batch):
                self._put(self._get(wave, counts), counts)
            counts.requests = bisect_right(ends, counts.lookups)
            counts.seconds = time.monotonic() - started
            if progress is not None:
                progress(counts)
        return counts

    def close(self) -> None:
        """Give the buffer back to the store's client."""
        self._store.unregister_buffer(self._places[0])

    def _get(self, blocks: Sequence[int], counts: ReplayCounts) -> list[int]:
        """Look all blocks up; return those that did not come back right."""
        codes = self._store.batch_get_into(
            [block_key(block) for block in blocks], self._places[: len(blocks)], self._sizes(len(blocks))
        )
        counts.lookups += len(blocks)
        missing = []
        for index, (block, code) in enumerate(zip(blocks, codes, strict=True)):
            if code == self._block_bytes and self._block_at(index) == self._content(block):
                counts.hits += 1
                continue
            missing.append(block)
            if code >= 0:
                counts.wrong_bytes += 1
            elif code != NOT_FOUND:
                counts.failed_gets += 1
        return missing

    def _put(self, blocks: Sequence[int], counts: ReplayCounts) -> None:
        """Put the blocks; those refused for lack of space once more after a moment."""
        refused = self._put_once(blocks, counts)
        if refused:
            counts.no_space += len(refused)
            time.sleep(SPACE_RETRY_SECONDS)
            counts.failed_puts += len(self._put_once(refused, counts))

    def _put_once(self, blocks: Sequence[int], counts: ReplayCounts) -> list[int]:
        if not blocks:
            return []
        for index, block in enumerate(blocks):
            start = index * self._block_bytes
            self._view[start : start + self._block_bytes] = self._content(block)
        codes = self._store.batch_put_from(
            [block_key(block) for block in blocks], self._places[: len(blocks)], self._sizes(len(blocks))
        )
        counts.stored += sum(code == 0 for code in codes)
        counts.failed_puts += sum(code not in (0, NO_SPACE) for code in codes)
        return [block for block, code in zip(blocks, codes, strict=True) if code == NO_SPACE]

    def _sizes(self, count: int) -> list[int]:
        return [self._block_bytes] * count

    def _block_at(self, index: int) -> memoryview:
        return self._view[index * self._block_bytes : (index + 1) * self._block_bytes]

    def _content(self, block: int) -> bytes:
        return block_content(block, self._block_bytes)


def block_key(block: int) -> str:
    """Return the store's key of a block."""
    return f"kv-block/{block}"


def block_content(block: int, block_bytes: int) -> bytes:
    """Return the bytes of a block: its id's digest, repeated, so that another block's bytes never pass."""
    digest = hashlib.blake2b(block.to_bytes(8, "big"), digest_size=DIGEST_BYTES).digest()
    return digest * (block_bytes // DIGEST_BYTES)


def _waves(batch: Sequence[int]) -> list[list[int]]:
    """Part a batch so that no block occurs twice in a wave: the n-th holds all n-th occurrences.

    A key given twice in one `batch_get_into` comes back as read both times, while only one of the two
    buffers is filled (seen with 0.3.13).
    """
    waves: list[list[int]] = []
    occurrences: Counter[int] = Counter()
    for block in batch:
        if occurrences[block] == len(waves):
            waves.append([])
        waves[occurrences[block]].append(block)
        occurrences[block] += 1
    return waves


def _print_progress(total: int) -> Progress:
    shown = 0.0

    def show(counts: ReplayCounts) -> None:
        nonlocal shown
        if counts.seconds - shown >= 1.0 or counts.requests == total:
            shown = counts.seconds
            print(
                f"{counts.requests}/{total} requests, {counts.lookups} look-ups, "
                f"hit rate {counts.hit_rate:.4f}, {counts.seconds:.1f} s",
                flush=True,
            )

    return show


def main() -> None:
    """Replay, print progress, and write the counts to `--out` as one JSON object."""
    parser = argparse.ArgumentParser(prog="python -m demo.replay", description=__doc__)
    parser.add_argument("--master", required=True, help="host:port of the Mooncake master")
    parser.add_argument("--local-name", required=True, help="host:port that this client calls itself")
    parser.add_argument("--trace", type=Path, default=DEFAULT_TRACE)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--block-bytes", type=parse_quantity, default=8192, help="4Ki to 8Ki are usual here")
    parser.add_argument("--keep-store", action="store_true", help="do not empty the store first")
    parser.add_argument("--out", type=Path, help="where to write the counts")
    arguments = parser.parse_args()
    try:
        requests = read_trace(arguments.trace, first=arguments.requests)
    except TraceUnreadableError as error:
        parser.error(str(error))
    store = join_store(
        local_name=arguments.local_name,
        master=arguments.master,
        segment_bytes=0,
        buffer_bytes=CLIENT_BUFFER_BYTES,
    )
    try:
        replay = Replay(store, block_bytes=arguments.block_bytes)
        if not arguments.keep_store:
            replay.empty_store()
        counts = replay.run(requests, progress=_print_progress(len(requests)))
        replay.close()
    finally:
        store.close()
    print(f"hit rate {counts.hit_rate:.4f}; with room for everything it is {reuse_ceiling(requests):.4f}")
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(dataclasses.asdict(counts)) + "\n")


if __name__ == "__main__":
    main()
