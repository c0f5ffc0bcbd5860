"""The integer search: how many prefill and how many decode instances.

    maximise  min(n_P * R_P, n_D * R_D) / (n_P * g_P + n_D * g_D)

with g cards an instance. Source: AIConfigurator's matching of prefill and decode workers (Apache-2.0
repository). Splits that come within one percent of the best are taken for equal, and the one with the fewest
cards wins: 3:2 and 20:13 are the same answer, but nobody wants to buy 33 cards to learn that.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, inf
from typing import Final

FREE_INSTANCES: Final = 16
"""Of each role that are tried when the number of cards is free."""
EQUAL_SHARE: Final = 0.99


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most prefill instances for each decode instance."""

    least: Fraction = Fraction(0)
    most: Fraction | None = None
    """None: any."""

    def allow(self, split: "Split") -> bool:
        """Tell whether a split keeps the bounds."""
        if self.most is None and not self.least:
            return True
        ratio = Fraction(split.prefill, split.decode)
        return self.least <= ratio and (self.most is None or ratio <= self.most)


ANY: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Split:
    """Instances of each role, at least one."""

    prefill: int
    decode: int

    def __str__(self) -> str:
        return f"{self.prefill}/{self.decode}"

    def cards(self, prefill_cards: int, decode_cards: int) -> int:
        """Cards that it takes."""
        return self.prefill * prefill_cards + self.decode * decode_cards

    def rate(self, prefill_rate: float, decode_rate: float) -> float:
        """Requests a second that it carries: the slower role's."""
        return min(self.prefill * prefill_rate, self.decode * decode_rate)


def splits(
    prefill_cards: int,
    decode_cards: int,
    cards: int | None,
    bounds: Bounds = ANY,
    balance: float | None = None,
) -> Iterator[Split]:
    """Every split that keeps the bounds: of at most `cards` cards, or, when None, of 16 instances a role.

    With a `balance`, the decode instances that one prefill instance keeps busy, splits are left out that have
    an instance too many: one less of that role carries as much and keeps the bounds.
    """
    most_prefill = FREE_INSTANCES if cards is None else (cards - decode_cards) // prefill_cards
    for prefill in range(1, most_prefill + 1):
        most_decode = FREE_INSTANCES if cards is None else (cards - prefill * prefill_cards) // decode_cards
        least, most = (1, most_decode) if balance is None else _useful(prefill, balance, bounds)
        for decode in range(least, min(most, most_decode) + 1):
            split = Split(prefill, decode)
            if bounds.allow(split):
                yield split


def _useful(prefill: int, balance: float, bounds: Bounds) -> tuple[int, int]:
    """Decode instances, least and most, beside which no instance of either role is one too many.

    Wider by one than the algebra says, on either side: the rates are floats.
    """
    busy = prefill * balance
    most = max(busy, float(prefill / bounds.most)) if bounds.most else busy
    idle = min((prefill - 1) * balance, float((prefill - 1) / bounds.least) if bounds.least else inf)
    return max(1, floor(idle)), ceil(most) + 1


def best_split(
    prefill_rate: float,
    decode_rate: float,
    prefill_cards: int = 1,
    decode_cards: int = 1,
    cards: int | None = None,
    bounds: Bounds = ANY,
) -> Split | None:
    """The split that carries most; None when no split fits the cards and keeps the bounds.

    With a number of cards to use, most requests a second; else most for each card.
    """

    def worth(split: Split) -> float:
        carried = split.rate(prefill_rate, decode_rate)
        return carried if cards is not None else carried / split.cards(prefill_cards, decode_cards)

    balance = prefill_rate / decode_rate
    tried = list(splits(prefill_cards, decode_cards, cards, bounds, balance))
    if not tried:
        return None
    enough = EQUAL_SHARE * max(map(worth, tried))
    return min(
        (split for split in tried if worth(split) >= enough),
        key=lambda split: (split.cards(prefill_cards, decode_cards), -worth(split), split.prefill),
    )
