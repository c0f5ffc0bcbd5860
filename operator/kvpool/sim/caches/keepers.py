"""Three ways to decide which state of a hybrid model is kept: by one score, as Marconi does, and densely."""

from math import inf
from typing import Final, Protocol

from kvpool.plan.placement.checkpoints import CheckpointCost, ReturnRates, interval_tokens
from kvpool.plan.placement.classwise import ReuseFit
from kvpool.plan.placement.eviction import Use
from kvpool.plan.placement.marconi import Entry, HybridShape, admitted, scores
from kvpool.plan.placement.worth import Branch, Sizes, reclaim
from kvpool.plan.timing.model import TimingModel
from kvpool.sim.caches.strands import NOBODY, Match, Strand, Strands

ONE_CLASS: Final = ""


class Keeper(Protocol):
    """Decides where checkpoints are taken, and what leaves."""

    def served(self, strands: Strands, found: Match, strand: Strand, tokens: int, now_ns: int) -> None:
        """Take checkpoints after a prompt of `tokens` was computed from `found.usable_tokens` on."""

    def shrink(self, strands: Strands, wanted_bytes: int, now_ns: int) -> None:
        """Give up at least `wanted_bytes`, if there is so much."""


class OneScore:
    """Checkpoints at an adaptive interval and at the end; whatever saves least for its bytes leaves."""

    def __init__(self, sizes: Sizes, timing: TimingModel, cost: CheckpointCost, ahead_ns: int) -> None:
        self._sizes = sizes
        self._timing = timing
        self._cost = cost
        self._ahead_ns = ahead_ns
        self._fit = ReuseFit()
        self._rates = ReturnRates()
        self._sessions: dict[int, Use] = {}
        self._newest: dict[int, int] = {}
        """Of each session, the strand that its last turn was on."""
        self._turns = 0
        self._back = 0

    def served(self, strands: Strands, found: Match, strand: Strand, tokens: int, now_ns: int) -> None:
        """As the class says."""
        self._turns += 1
        session = strand.session
        use = self._sessions.get(session)
        if use is None:
            use = self._sessions[session] = Use(session, now_ns, self._turns)
        else:
            self._rates.note(ONE_CLASS, now_ns - use.last_ns)
            use.again(now_ns, self._turns)
            # A turn that leaves the known part before its end went back.
            self._back += strand.name != self._newest.get(session)
        self._fit.note(use)
        self._newest[session] = strand.name
        step = interval_tokens(self._cost, tokens, self._rates.per_second(ONE_CLASS) * self._share_back)
        first = found.usable_tokens // step + 1
        strands.add_checkpoints(strand, [*range(first * step, tokens, step), tokens])

    def shrink(self, strands: Strands, wanted_bytes: int, now_ns: int) -> None:
        """One decision over checkpoints and KV of all strands."""
        branches = [self._branch(strands, strand, now_ns) for strand in strands.strands if strand.holds]
        for drop in reclaim(branches, self._sizes, self._timing, wanted_bytes):
            if drop.is_checkpoint:
                strands.drop_checkpoint(drop.branch, drop.position)
            else:
                strands.cut(drop.branch, drop.position)

    @property
    def _share_back(self) -> float:
        return (self._back + 1) / (self._turns + 2)

    def _branch(self, strands: Strands, strand: Strand, now_ns: int) -> Branch:
        use = self._sessions.get(strand.session)
        chance = self._fit.chance(now_ns - use.last_ns, self._ahead_ns) if use is not None else 0.0
        if self._newest.get(strand.session) != strand.name:
            chance *= self._share_back
        return Branch(
            strand.name,
            chance,
            tuple(strand.checkpoints),
            strand.kept,
            self._share_back,
            strand.start,
            strands.floor(strand),
        )


class Marconi:
    """Checkpoints where sequences branch and at the end; the least recency plus alpha times efficiency
    leaves."""

    def __init__(self, sizes: Sizes, shape: HybridShape, alpha: float) -> None:
        self._sizes = sizes
        self._shape = shape
        self._alpha = alpha
        self._last_ns: dict[tuple[int, int], int] = {}

    def served(self, strands: Strands, found: Match, strand: Strand, tokens: int, now_ns: int) -> None:
        """As the class says; a hit refreshes the one checkpoint that it used."""
        if found.holder != NOBODY:
            self._last_ns[found.holder, found.usable_tokens] = now_ns
        branched = found.usable_tokens < found.known_tokens and strand.start == found.known_tokens
        points = [found.known_tokens] if branched else []
        for added in strands.add_checkpoints(strand, admitted(points, tokens)):
            self._last_ns[added] = now_ns

    def shrink(self, strands: Strands, wanted_bytes: int, now_ns: int) -> None:
        """Evict entries with at most one successor, scored once for each round: others are shared."""
        target = strands.held_bytes - wanted_bytes
        while strands.held_bytes > target:
            places: list[tuple[int, int]] = []
            entries: list[Entry] = []
            for strand in strands.strands:
                if strand.checkpoints:
                    self._list(strands, strand, places, entries)
            if not entries:
                self._cut_all(strands)
                return
            known = scores(entries, self._alpha)
            for index in sorted(range(len(entries)), key=lambda index: (known[index], index)):
                if strands.held_bytes <= target:
                    return
                self._evict(strands, *places[index])

    def _list(
        self, strands: Strands, strand: Strand, places: list[tuple[int, int]], entries: list[Entry]
    ) -> None:
        floor = strands.floor(strand)
        branches = [strands.strands[child].start for child in strand.children if strands.strands[child].holds]
        older = strand.start
        for position, following in zip(strand.checkpoints, [*strand.checkpoints[1:], inf], strict=True):
            leaf = following == inf and position > floor
            held = self._sizes.checkpoint_bytes
            held += (strand.kept - max(older, floor)) * self._sizes.token_bytes if leaf else 0
            saved = self._shape.prefill_flops(position) - self._shape.prefill_flops(older)
            successors = sum(position <= start < following for start in branches) + (following < inf)
            if successors <= 1:
                places.append((strand.name, position))
                entries.append(Entry(len(entries), self._last_ns[strand.name, position], saved, held))
            older = position

    def _evict(self, strands: Strands, name: int, position: int) -> None:
        strands.drop_checkpoint(name, position)
        del self._last_ns[name, position]
        left = strands.strands[name].checkpoints
        strands.cut(name, left[-1] if left else 0)

    def _cut_all(self, strands: Strands) -> None:
        for strand in reversed(strands.strands):
            strands.cut(strand.name, 0)


class Dense:
    """Checkpoints every so many tokens; the tail of the least recently used sequence leaves."""

    def __init__(self, every_tokens: int) -> None:
        self._every = every_tokens

    def served(self, strands: Strands, found: Match, strand: Strand, tokens: int, now_ns: int) -> None:
        """As the class says."""
        first = found.usable_tokens // self._every + 1
        strands.add_checkpoints(strand, [*range(first * self._every, tokens, self._every), tokens])

    def shrink(self, strands: Strands, wanted_bytes: int, now_ns: int) -> None:
        """Leaf first: of the least recent sequence that nobody else needs, from its last checkpoint down."""
        target = strands.held_bytes - wanted_bytes
        oldest = sorted(
            (strand for strand in strands.strands if strand.holds),
            key=lambda strand: (strand.last_ns, -strand.name),
        )
        for strand in oldest:
            floor = strands.floor(strand)
            while strands.held_bytes > target and strand.checkpoints and strand.checkpoints[-1] > floor:
                strands.drop_checkpoint(strand.name, strand.checkpoints[-1])
                strands.cut(strand.name, strand.checkpoints[-1] if strand.checkpoints else 0)
            if strands.held_bytes <= target:
                return
