"""How much spare cards help: how often a domain is whole, and how long a swap takes.

A domain of n cards with s spares behind a switch is whole iff at most s of the n + s are down. With p the
share of time that a card is down, independently of the others,

    A = sum over i = 0..s of C(n + s, i) * p^i * (1 - p)^(n + s - i)
    outage of a swap = detect + reconfigure + weights / BW + unique KV lost / BW

Binomial form: textbook k-out-of-n reliability (Barlow and Proschan, 1975). Outage: kvpool's own derivation;
KV that has another copy is not waited for.
"""

import math
from dataclasses import dataclass

from kvpool.plan.timing.model import LinkModel


def availability(cards: int, spares: int, down_share: float) -> float:
    """Return the share of time that a domain has all its cards.

    Raises:
        ValueError: when a figure cannot be.
    """
    if cards < 1 or spares < 0:
        raise ValueError(f"cards {cards} must be 1 or more and spares {spares} 0 or more")
    if not 0 <= down_share <= 1:
        raise ValueError(f"down_share is {down_share}: give the share of time that a card is down, 0 to 1")
    if down_share in (0, 1):
        return 1.0 - down_share
    whole, down_log, up_log = cards + spares, math.log(down_share), math.log1p(-down_share)
    # By logarithms: a float holds neither the coefficients of large domains nor the powers of bad cards.
    return math.fsum(
        math.exp(math.log(math.comb(whole, down)) + down * down_log + (whole - down) * up_log)
        for down in range(spares + 1)
    )


def spares_for(cards: int, down_share: float, wanted: float, most: int = 64) -> int | None:
    """Return the fewest spares that reach the wanted availability; None when `most` do not."""
    return next(
        (count for count in range(most + 1) if availability(cards, count, down_share) >= wanted), None
    )


@dataclass(frozen=True, slots=True)
class Swap:
    """What happens when a spare takes a card's place."""

    detect_ns: int
    reconfigure_ns: int
    """Of the switch that leads to the spare."""
    weight_bytes: int
    """Weights of one card."""
    unique_kv_bytes: int
    """KV that was on the lost card only, and is fetched or computed again."""
    weights_from: LinkModel
    kv_from: LinkModel

    def outage_ns(self) -> int:
        """Time from the fault until the domain serves as before. Nanoseconds."""
        reload = self.weights_from.transfer_ns(self.weight_bytes)
        return self.detect_ns + self.reconfigure_ns + reload + self.kv_from.transfer_ns(self.unique_kv_bytes)
