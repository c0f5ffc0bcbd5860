"""State of a hybrid model in one memory: KV along branching sequences, and checkpoints at some positions.

A strand is a sequence from where it left another one (or from the start) to its tip. KV is kept from the
start on, without holes; a request can go on from the last checkpoint within the KV that is there.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kvpool.plan.placement.checkpoints import usable_tokens
from kvpool.plan.placement.worth import Sizes

NOBODY = -1


@dataclass(slots=True)
class Strand:
    """One sequence. Positions are tokens from the start of the prompt."""

    name: int
    session: int
    parent: int
    start: int
    tip: int
    """Known so far, kept or not."""
    kept: int
    """KV is there from `start` to here."""
    last_ns: int = 0
    checkpoints: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether anything of it is there."""
        return self.kept > self.start or bool(self.checkpoints)


@dataclass(frozen=True, slots=True)
class Match:
    """What a request finds."""

    strand: int
    """Where its known part ends; -1: nothing is known."""
    known_tokens: int
    """Of the prompt, seen before, kept or not."""
    matched_tokens: int
    """KV that is there."""
    usable_tokens: int
    """What it goes on from."""
    holder: int
    """The strand of that checkpoint; -1: none."""


class Strands:
    """All strands, and the bytes that they hold."""

    def __init__(self, sizes: Sizes, block_tokens: int) -> None:
        self.strands: list[Strand] = []
        self.held_bytes = 0
        self._sizes = sizes
        self._block_tokens = block_tokens
        self._owner: dict[int, int] = {}

    def match(self, path: Sequence[int]) -> Match:
        """Find what of a prompt is there. `path`: its nodes in the tree of all prompts."""
        owner = self._owner
        blocks = bisect_left(path, True, key=lambda node: node not in owner)
        if not blocks:
            return Match(NOBODY, 0, 0, 0, NOBODY)
        strand = self.strands[owner[path[blocks - 1]]]
        known = blocks * self._block_tokens
        at, position = strand, known
        # A strand without KV of its own leaves what its parent has, up to where it left that one.
        while at.kept <= at.start and at.parent != NOBODY:
            at, position = self.strands[at.parent], at.start
        matched = min(position, at.kept)
        usable, holder = 0, at
        position = matched
        while True:
            usable = usable_tokens(holder.checkpoints, position)
            if usable or holder.parent == NOBODY:
                break
            holder, position = self.strands[holder.parent], min(position, holder.start)
        return Match(strand.name, known, matched, usable, holder.name if usable else NOBODY)

    def put(self, path: Sequence[int], found: Match, session: int, now_ns: int) -> Strand:
        """Keep the KV of a served prompt; return its strand."""
        tokens = len(path) * self._block_tokens
        strand = self.strands[found.strand] if found.strand != NOBODY else None
        if strand is None or (found.known_tokens < strand.tip and found.known_tokens < tokens):
            parent = found.strand
            start = found.known_tokens
            strand = Strand(len(self.strands), session, parent, start, start, start)
            self.strands.append(strand)
            if parent != NOBODY:
                self.strands[parent].children.append(strand.name)
        for node in path[found.known_tokens // self._block_tokens :]:
            self._owner[node] = strand.name
        strand.tip = max(strand.tip, tokens)
        at, upto = strand, tokens
        while True:
            if upto > at.kept:
                self.held_bytes += (upto - at.kept) * self._sizes.token_bytes
                at.kept = upto
            at.last_ns = now_ns
            if at.parent == NOBODY:
                return strand
            at, upto = self.strands[at.parent], at.start

    def add_checkpoints(self, strand: Strand, positions: Iterable[int]) -> list[tuple[int, int]]:
        """Keep checkpoints along a strand and those it left; return (strand, position) of the new ones."""
        added: list[tuple[int, int]] = []
        for position in positions:
            at = strand
            while position <= at.start and at.parent != NOBODY:
                at = self.strands[at.parent]
            if position not in at.checkpoints:
                insort(at.checkpoints, position)
                self.held_bytes += self._sizes.checkpoint_bytes
                added.append((at.name, position))
        return added

    def drop_checkpoint(self, name: int, position: int) -> None:
        """Give up one checkpoint."""
        self.strands[name].checkpoints.remove(position)
        self.held_bytes -= self._sizes.checkpoint_bytes

    def cut(self, name: int, position: int) -> None:
        """Give up the KV of a strand behind a position, as far as no other strand needs it."""
        strand = self.strands[name]
        last = max(position, strand.start, self.floor(strand))
        if last < strand.kept:
            self.held_bytes -= (strand.kept - last) * self._sizes.token_bytes
            strand.kept = last

    def floor(self, strand: Strand) -> int:
        """KV of the strand up to here is needed by strands that left it and hold something; 0: none is."""
        return max((self.strands[c].start for c in strand.children if self.strands[c].holds), default=0)
