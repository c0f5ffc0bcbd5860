"""One score for everything that takes memory, so that one decision both thins checkpoints and reclaims KV.

    score = P(reuse) * time saved / bytes

A checkpoint saves only what its next older one would have to recompute: neighbours make each other cheap,
and that is what thins them. KV behind the last checkpoint saves nothing, for no checkpoint can use it.
HiState (arXiv 2610.41508, read second hand) takes one eviction decision over classes; this score is
kvpool's own derivation.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.timing.model import TimingModel


@dataclass(frozen=True, slots=True)
class Branch:
    """One sequence: KV of its tokens and checkpoints along it."""

    name: int
    reuse: float
    """P(its next turn comes while what it holds is kept), 0 to 1."""
    checkpoints: tuple[int, ...]
    """Positions in tokens, ascending."""
    kv_tokens: int
    """KV is kept up to this position."""
    revisit: float = 0.0
    """P(a return goes to an older position instead of the newest), spread evenly over the sequence."""
    start: int = 0
    """Where it left another sequence, in tokens: what lies before belongs to that one."""
    floor: int = 0
    """KV up to here is needed by sequences that left this one."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What state takes."""

    token_bytes: int
    checkpoint_bytes: int


@dataclass(frozen=True, slots=True)
class Drop:
    """One thing to give up: the checkpoint at a position, or the KV behind it."""

    branch: int
    position: int
    is_checkpoint: bool
    freed_bytes: int


def score(reuse: float, saved_ns: float, held_bytes: int) -> float:
    """Return nanoseconds saved for each byte held. The lowest goes first."""
    return reuse * saved_ns / held_bytes


def checkpoint_saves_ns(timing: TimingModel, position: int, older: int) -> int:
    """Return the prefill that the checkpoint at `position` saves over going on from the one at `older`."""
    return timing.prefill_ns(position, older)


def reclaim(branches: Sequence[Branch], sizes: Sizes, timing: TimingModel, wanted_bytes: int) -> list[Drop]:
    """Return what to give up, in order, until `wanted_bytes` are free or nothing is left.

    KV goes with the checkpoint that made it usable. Ties: the branch given first, then the older position.
    """
    chains = [_Chain(branch) for branch in branches]
    drops: list[Drop] = []
    freed = 0
    for chain in chains:
        if chain.is_dead_behind and freed < wanted_bytes:
            drops.append(chain.cut(sizes.token_bytes))
            freed += drops[-1].freed_bytes
    heap = [
        (chain.score_of(position, sizes, timing), place, position)
        for place, chain in enumerate(chains)
        for position in chain.positions
    ]
    heapq.heapify(heap)
    while heap and freed < wanted_bytes:
        known, place, position = heapq.heappop(heap)
        chain = chains[place]
        if position not in chain.positions or known != chain.score_of(position, sizes, timing):
            # Given up meanwhile, or a neighbour was: then it was noted anew.
            continue
        neighbours = chain.drop(position)
        drops.append(Drop(chain.branch.name, position, True, sizes.checkpoint_bytes))
        freed += sizes.checkpoint_bytes
        if freed < wanted_bytes and chain.is_dead_behind:
            drops.append(chain.cut(sizes.token_bytes))
            freed += drops[-1].freed_bytes
        # They save more than they did, and more KV may go with them: each is worth more now, or less.
        for neighbour in neighbours:
            heapq.heappush(heap, (chain.score_of(neighbour, sizes, timing), place, neighbour))
    return drops


class _Chain:
    """One branch while things are given up."""

    __slots__ = ("branch", "kv_tokens", "positions")

    def __init__(self, branch: Branch) -> None:
        self.branch = branch
        self.positions = list(branch.checkpoints)
        self.kv_tokens = branch.kv_tokens

    def score_of(self, position: int, sizes: Sizes, timing: TimingModel) -> float:
        index = self.positions.index(position)
        older = self.positions[index - 1] if index else self.branch.start
        newest = index == len(self.positions) - 1
        # A revisit lands between two checkpoints in proportion to the tokens between them.
        following = self.positions[index + 1] if not newest else self.branch.kv_tokens
        landing = self.branch.revisit * (following - position) / max(1, self.branch.kv_tokens)
        reuse = self.branch.reuse * (landing + (1.0 - self.branch.revisit if newest else 0.0))
        held = sizes.checkpoint_bytes
        if newest:
            # Its KV goes with it.
            held += max(0, self.kv_tokens - max(older, self.branch.floor)) * sizes.token_bytes
        return score(reuse, checkpoint_saves_ns(timing, position, older), held)

    def drop(self, position: int) -> list[int]:
        """Give up a checkpoint. Returns the checkpoints that were next to it: their scores change."""
        index = self.positions.index(position)
        del self.positions[index]
        return self.positions[max(0, index - 1) : index + 1]

    @property
    def last(self) -> int:
        """KV up to here can be used: by this branch's last checkpoint, or by branches that left it."""
        own = self.positions[-1] if self.positions else self.branch.start
        return max(own, self.branch.start, self.branch.floor)

    @property
    def is_dead_behind(self) -> bool:
        return self.kv_tokens > self.last

    def cut(self, token_bytes: int) -> Drop:
        freed = (self.kv_tokens - self.last) * token_bytes
        self.kv_tokens = self.last
        return Drop(self.branch.name, self.last, False, freed)
