"""Whether memory outside the rack is bought for capacity or for latency.

While the links inside the rack carry all returns (`returns * s < BW inside`), memory outside adds only
room; above that, returns queue inside the rack, and the way outside is bought to shorten them. kvpool's own
derivation.
"""

from dataclasses import dataclass
from enum import StrEnum


class Buys(StrEnum):
    """What pooling outward is bought for."""

    CAPACITY = "Capacity"
    LATENCY = "Latency"


@dataclass(frozen=True, slots=True)
class PoolingVerdict:
    """The verdict with its two figures."""

    buys: Buys
    needed_bytes_per_second: int
    """What all returns together load."""
    inside_bytes_per_second: int

    @property
    def load(self) -> float:
        """Needed for each byte a second that there is inside."""
        return self.needed_bytes_per_second / self.inside_bytes_per_second


def pooling_verdict(
    returns_per_second: float, session_bytes: int, inside_bytes_per_second: int
) -> PoolingVerdict:
    """Return what memory outside the rack buys.

    Raises:
        ValueError: when the rack has no links inside.
    """
    if inside_bytes_per_second < 1:
        raise ValueError(f"inside_bytes_per_second is {inside_bytes_per_second}: give the rack's own rate")
    needed = round(returns_per_second * session_bytes)
    buys = Buys.CAPACITY if needed < inside_bytes_per_second else Buys.LATENCY
    return PoolingVerdict(buys, needed, inside_bytes_per_second)
