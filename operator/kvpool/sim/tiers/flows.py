"""What crossed the boundaries between tiers, in objects."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Flow:
    """What crossed one boundary. An object counts once for each boundary that it crosses."""

    promoted: int = 0
    """Moved up to be read: a re-access, always."""
    prefetched: int = 0
    """Moved up ahead of its use."""
    demoted_once_used: int = 0
    """Moved down after its first and only use: no rule avoids that."""
    demoted_reused: int = 0
    """Moved down after it was used again."""

    @property
    def reused(self) -> int:
        """What moved of objects that were used more than once."""
        return self.promoted + self.prefetched + self.demoted_reused

    @property
    def total(self) -> int:
        """All that moved."""
        return self.reused + self.demoted_once_used


@dataclass(slots=True)
class Flows:
    """Counts of one run."""

    boundaries: list[Flow]
    """Between tier i and i + 1, from the top."""
    found: list[int]
    """Accesses to objects found in each tier, from the top."""
    first: int = 0
    """Accesses to objects that were nowhere: the first ones, or after they were dropped."""
    prefix: int = 0
    """Accesses to objects found with all objects before them in their request: what a prompt need not
    compute."""
    dropped: int = 0
    """Objects that left the last tier."""
    resident: int = 0
    """Copies in all tiers at the end."""
    unique: int = 0
    """Different objects among them."""
    deepest: list[int] = field(default_factory=list)
    """Requests by the deepest tier that they read from; the last count is of those that found a gap."""

    @property
    def unique_share(self) -> float:
        """Different objects over copies: the value of several tiers is how many hold the only copy."""
        return self.unique / self.resident if self.resident else 1.0

    def share_found(self, tier: int) -> float:
        """Share of all accesses that one tier answered."""
        accesses = sum(self.found) + self.first
        return self.found[tier] / accesses if accesses else 0.0


def no_flows(tiers: int) -> Flows:
    """Return counts of nothing yet."""
    return Flows([Flow() for _ in range(tiers - 1)], [0] * tiers, deepest=[0] * (tiers + 1))
