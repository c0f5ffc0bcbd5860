"""Streams of KV-cache events: what engines stored, from which the prompts are put together again.

An engine tells what it stores, not what it finds: a prompt that is cached whole leaves no event, and of the
others the cached part is known by the parent of what was stored. So this is the stream of misses, each with
its prefix. Where prompts and answers end inside a block is not seen either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.sim.imports.event_shapes import Cleared, Event, Removed, Stored, events_of
from kvpool.sim.imports.salted import NO_BLOCK, SaltedIds, token_bytes
from kvpool.sim.workloads.fields import NS_PER_SECOND, json_value
from kvpool.sim.workloads.reading import LineError, count
from kvpool.sim.workloads.request import Request

BLOCK_TOKENS: Final = 16
"""vLLM's default, for events that do not tell it."""
ANSWER_GAP_NS: Final = 10 * NS_PER_SECOND
"""What is stored after a prompt within this time belongs to its request, what comes later is a new turn."""
DEVICE: Final = ("GPU", "DEVICE")
"""Where engines compute; blocks that are copied to lower tiers are not stored a second time."""


class _Block:
    """A block that was stored; a block keeps those before it, however long the engine does."""

    __slots__ = ("before", "depth", "number")

    def __init__(self, number: int, before: "_Block | None") -> None:
        self.number = number
        self.before = before
        self.depth: int = 1 if before is None else before.depth + 1

    def path(self) -> tuple[int, ...]:
        """Return the ids from the first block to this one."""
        numbers = []
        block: _Block | None = self
        while block is not None:
            numbers.append(block.number)
            block = block.before
        return tuple(reversed(numbers))


@dataclass(slots=True)
class _Open:
    """A request whose answer may still grow."""

    began_ns: int
    last_ns: int
    prompt: _Block
    answer_blocks: int = 0


class KvEventReader:
    """Each line a batch of events of one worker; a prompt comes when its first block is stored."""

    def __init__(self, ids: SaltedIds, block_tokens: int | None) -> None:
        self._ids = ids
        self._given_tokens = block_tokens
        self._told = False
        self._blocks: dict[str, dict[str, _Block]] = {}
        """By worker and the engine's hash."""
        self._open: dict[tuple[str, str], _Open] = {}
        """By worker and the hash of the last block, the longest untouched first."""
        self.block_tokens = block_tokens or BLOCK_TOKENS
        self.notes: dict[str, int] = {}

    def read(self, text: str) -> Sequence[Request]:
        """Return the requests that ended before this batch."""
        batch = events_of(json_value(text))
        done: list[Request] = []
        while self._open:
            key = next(iter(self._open))
            if self._open[key].last_ns + ANSWER_GAP_NS >= batch.at_ns:
                break
            done.append(self._closed(self._open.pop(key)))
        for event in batch.events:
            self._take(batch.at_ns, batch.worker, event)
        return done

    def finish(self) -> Sequence[Request]:
        """Return the requests that were still open."""
        done = [self._closed(each) for each in self._open.values()]
        self._open.clear()
        return done

    def _take(self, at_ns: int, worker: str, event: Event) -> None:
        known = self._blocks.setdefault(worker, {})
        if isinstance(event, Cleared):
            count(self.notes, "caches_cleared")
            known.clear()
            return
        if event.medium and event.medium.upper() not in DEVICE:
            count(self.notes, "events_of_lower_tiers")
            return
        if isinstance(event, Removed):
            for each in event.hashes:
                known.pop(each, None)
            return
        self._store(at_ns, worker, event, known)

    def _store(self, at_ns: int, worker: str, event: Stored, known: dict[str, _Block]) -> None:
        self._check_size(event)
        block = known.get(event.parent) if event.parent is not None else None
        if event.parent is not None and block is None:
            count(self.notes, "parents_not_seen")
            return
        if not event.hashes:
            return
        for each, content in zip(event.hashes, self._contents(event), strict=True):
            number = self._ids.block(NO_BLOCK if block is None else block.number, content)
            block = known[each] = _Block(number, block)
        if block is None:
            return
        opened = self._open.pop((worker, event.parent), None) if event.parent is not None else None
        if opened is None:
            opened = _Open(at_ns, at_ns, block)
        elif len(event.hashes) > 1 and not opened.answer_blocks:
            # Long prompts are computed and stored in pieces; answers fill one block after another.
            opened.prompt = block
        else:
            opened.answer_blocks += len(event.hashes)
        opened.last_ns = at_ns
        self._open[worker, event.hashes[-1]] = opened

    def _contents(self, event: Stored) -> list[bytes]:
        """Return what tells a block from others after the same prefix: its tokens, or the engine's hash."""
        lora = f"|{event.lora}".encode() if event.lora else b""
        size = self.block_tokens
        if not event.token_ids:
            return [each.encode() + lora for each in event.contents or event.hashes]
        if len(event.token_ids) != size * len(event.hashes):
            raise LineError(
                f"`token_ids` has {len(event.token_ids)} tokens, and {len(event.hashes)} blocks of {size} "
                f"have {size * len(event.hashes)}"
            )
        return [
            token_bytes(event.token_ids[start : start + size]) + lora
            for start in range(0, len(event.token_ids), size)
        ]

    def _check_size(self, event: Stored) -> None:
        if event.block_size is None:
            return
        wanted = self.block_tokens if self._told else self._given_tokens
        if wanted is not None and event.block_size != wanted:
            where = "in the events before it" if self._told else "by --block-tokens"
            raise LineError(f"`block_size` is {event.block_size}, and {wanted} {where}; a trace has one size")
        self.block_tokens = event.block_size
        self._told = True

    def _closed(self, opened: _Open) -> Request:
        size = self.block_tokens
        # The part of the answer that fills no block is not seen; half a block is its mean.
        output = opened.answer_blocks * size + max(1, size // 2)
        return Request(opened.began_ns, opened.prompt.depth * size, output, opened.prompt.path())
