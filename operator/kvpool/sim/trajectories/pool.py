"""The memory that programs keep their contexts in: whole contexts, least recently used first out."""

from collections.abc import Iterable


class ContextPool:
    """What each program has in memory. A context is kept whole or not at all."""

    def __init__(self, capacity_tokens: int) -> None:
        self.capacity_tokens = capacity_tokens
        self.used_tokens = 0
        self._held: dict[int, int] = {}

    def held_tokens(self, ident: int) -> int:
        """What the program has in memory; 0 when it was pushed out."""
        return self._held.get(ident, 0)

    def by_age(self) -> tuple[int, ...]:
        """Programs in memory, least recently used first."""
        return tuple(self._held)

    def drop(self, ident: int) -> None:
        """Push the program out."""
        self.used_tokens -= self._held.pop(ident, 0)

    def keep(self, ident: int, tokens: int, victims: Iterable[int]) -> tuple[int, ...]:
        """Hold `tokens` of the program from now on; it is the one used last.

        Pushes out `victims` in their order while there is no room, and returns those that it did. When even
        that is not enough the program itself is not held.
        """
        self.drop(ident)
        gone = []
        for victim in victims:
            if self.used_tokens + tokens <= self.capacity_tokens:
                break
            if victim != ident and victim in self._held:
                self.drop(victim)
                gone.append(victim)
        if self.used_tokens + tokens <= self.capacity_tokens:
            self._held[ident] = tokens
            self.used_tokens += tokens
        return tuple(gone)
