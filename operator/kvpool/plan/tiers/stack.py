"""Tiers of memory, the links between them and the accelerator, and what parked sessions ask of both.

All inputs are plain numbers, so that the same planner serves an options file and the figures of a live
cluster. A session is parked whole: `session_bytes` is `kappa * context`. To serve its next turn, all of it
has to be in the first tier. The question of tiers that stand in a ratio to the accelerator's memory is that
of Tumkur et al., Where Should the KV Cache Live?, arXiv 2609.16215; the form is kvpool's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kvpool.plan.timing.model import NS_PER_SECOND, TimingModel

SECONDS_PER_DAY: Final = 86_400
MOST_SHARES: Final = 1.001
"""Of all shares together: people write three thirds as 0.333, 0.333 and 0.334, or round all of them up."""


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a link, all lanes together. Directions do not disturb each other."""

    name: str
    bytes_per_second: int
    setup_ns: int = 0


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier; the first of a stack is the accelerator's own memory, as far as it is for KV."""

    name: str
    capacity_bytes: int
    path: tuple[str, ...] = ()
    """Links that its bytes cross on the way to the first tier: (`ssd`, `pcie`). Empty: the way costs nothing
    that is known, as for the first tier."""
    price: float = 0.0
    """Of the whole tier, in any currency; the first tier's is that of the accelerators."""
    watts: float = 0.0
    write_bytes_per_day: int | None = None
    """What may be written a day until the end of the warranty; None: as much as one likes."""
    borrowed: bool = False
    """Lent, and to be given back when its owner asks."""


@dataclass(frozen=True, slots=True)
class Stack:
    """Tiers with their links."""

    tiers: tuple[Tier, ...]
    links: tuple[Link, ...] = ()
    exclusive: bool = True
    """A session is in one tier only; else each tier also holds what is in the tiers before it."""

    def __post_init__(self) -> None:
        """Refuse stacks whose names do not fit together."""
        names = [tier.name for tier in self.tiers]
        known = [link.name for link in self.links]
        for kind, given in (("tier", names), ("link", known)):
            twice = sorted({name for name in given if given.count(name) > 1})
            if twice:
                raise ValueError(f"{kind} {twice[0]!r} is given twice: give each {kind} a name of its own")
        if not names:
            raise ValueError("a stack needs at least one tier: give the accelerator's memory first")
        for tier in self.tiers:
            missing = [name for name in tier.path if name not in known]
            if missing:
                listed = ", ".join(known) or "none"
                raise ValueError(
                    f"tier {tier.name!r}: its path names link {missing[0]!r}, known are {listed}"
                )
        if self.tiers[0].path:
            raise ValueError(
                f"tier {names[0]!r} is the first: its bytes are there already, so it has no path"
            )
        for link in self.links:
            if link.bytes_per_second < 1:
                raise ValueError(
                    f"link {link.name!r} carries {link.bytes_per_second} bytes a second: give 1 or more"
                )


@dataclass(frozen=True, slots=True)
class Demand:
    """The sessions: how large, how often they return, and what they are promised."""

    session_bytes: int
    """Of one parked session; a high quantile of them, not the mean."""
    return_seconds: float
    """From one turn to the next: thinking and service."""
    context_tokens: int = 0
    """Tokens that are parked, and would have to be computed again without the parked bytes."""
    new_tokens: int = 0
    """Prompt tokens that the next turn adds."""
    new_bytes: int = 0
    """KV bytes that one turn adds; what inclusive tiers write each turn."""
    timing: TimingModel | None = None
    """Of the instance that serves them; None: times are those of the links alone."""
    ttft_target_ns: int | None = None
    quantile: float = 0.99
    """The share of returns that must meet the target."""
    utilisation: float = 0.8
    """The share of a link's rate that returns may use."""
    return_shares: Mapping[str, float] | None = None
    """Share of returns that find their session in a tier, by tier; None: sessions return equally often, so
    that the share is that of the sessions which the tier holds."""

    def __post_init__(self) -> None:
        """Refuse figures that cannot be."""
        if self.session_bytes < 1:
            raise ValueError(f"session_bytes is {self.session_bytes}: a session has 1 byte or more")
        if self.return_seconds <= 0:
            raise ValueError(f"return_seconds is {self.return_seconds}: give a time above 0")
        if not 0 < self.utilisation <= 1:
            raise ValueError(f"utilisation is {self.utilisation}: give a share above 0 and up to 1")
        if not 0 < self.quantile < 1:
            raise ValueError(f"quantile is {self.quantile}: give a share between 0 and 1, such as 0.99")
        shares = self.return_shares
        if shares is not None and (
            min(shares.values(), default=0) < 0 or not 0 < sum(shares.values()) <= MOST_SHARES
        ):
            raise ValueError(f"return_shares {dict(shares)} must be 0 or more each, and add up to at most 1")


def crossing_ns(link: Link, count_bytes: int) -> float:
    """Time that so many bytes keep a link busy, without set-up. Nanoseconds."""
    return count_bytes * NS_PER_SECOND / link.bytes_per_second
