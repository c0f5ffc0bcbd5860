"""How much idle memory a node may lend, so that its owner gets it back in time.

    lent = min(free - reserve, cap, T * rate)

T is the time within which everything is given back, and rate how fast the contents are moved away; contents
that may be dropped are given back at once. kvpool's own derivation.
"""

import math
from dataclasses import dataclass
from enum import StrEnum


class LentBy(StrEnum):
    """What decides how much is lent."""

    FREE = "Free"
    CAP = "Cap"
    RETURN_TIME = "ReturnTime"


@dataclass(frozen=True, slots=True)
class Lent:
    """Bytes that a node lends, and what keeps it from more."""

    size_bytes: int
    by: LentBy


def lendable(
    free_bytes: int,
    reserve_bytes: int,
    cap_bytes: int,
    return_seconds: float,
    move_bytes_per_second: int | None,
) -> Lent:
    """Return what may be lent now; `move_bytes_per_second` None: contents are dropped when asked back."""
    bounds = [(max(0, free_bytes - reserve_bytes), LentBy.FREE), (cap_bytes, LentBy.CAP)]
    if move_bytes_per_second is not None:
        bounds.append((math.floor(return_seconds * move_bytes_per_second), LentBy.RETURN_TIME))
    size, by = min(bounds, key=lambda bound: bound[0])
    return Lent(size, by)


def expected_ttft_ns(parked_ns: int, recompute_ns: int, revoked_share: float) -> float:
    """Mean time to first token of borrowed memory's sessions; this share was asked back meanwhile."""
    return (1 - revoked_share) * parked_ns + revoked_share * recompute_ns
