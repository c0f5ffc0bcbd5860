"""Prompts of which each turn tells only what it adds."""

from typing import Final

Piece = tuple[int, int, int]
"""A block id of the file, the first of its tokens that counts, and how many count."""
NO_BLOCK: Final = -1


class GrowingPrompts:
    """Puts the turns of sessions together, and cuts them into whole blocks again.

    A turn may end inside a block, and so the file's ids do not fall on the prompt's blocks. A block here is
    what is in it and before it: equal prompts get equal numbers, in all sessions.
    """

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._numbers: dict[tuple[int, tuple[Piece, ...]], int] = {}
        self._blocks: dict[int, list[int]] = {}
        self._rest: dict[int, list[Piece]] = {}
        self._lengths: dict[int, int] = {}

    def grown(self, session: int, ids: list[int], added_tokens: int) -> tuple[int, tuple[int, ...]]:
        """Return the prompt's tokens and whole blocks after a turn; without a session the turn is all."""
        if session < 0:
            return added_tokens, self._cut([], [], ids, added_tokens)[0]
        blocks, rest = self._cut(
            self._blocks.get(session, []), self._rest.get(session, []), ids, added_tokens
        )
        self._blocks[session], self._rest[session] = list(blocks), rest
        self._lengths[session] = self._lengths.get(session, 0) + added_tokens
        return self._lengths[session], blocks

    def _cut(
        self, blocks: list[int], rest: list[Piece], ids: list[int], added_tokens: int
    ) -> tuple[tuple[int, ...], list[Piece]]:
        blocks, rest = list(blocks), list(rest)
        room = self._block_tokens - sum(count for _, _, count in rest)
        for block_id in ids:
            held = min(self._block_tokens, added_tokens)
            added_tokens -= held
            start = 0
            while held - start >= room:
                rest.append((block_id, start, room))
                start += room
                blocks.append(self._number(blocks[-1] if blocks else NO_BLOCK, rest))
                rest, room = [], self._block_tokens
            if start < held:
                rest.append((block_id, start, held - start))
                room -= held - start
        return tuple(blocks), rest

    def _number(self, before: int, pieces: list[Piece]) -> int:
        return self._numbers.setdefault((before, tuple(pieces)), len(self._numbers))
