"""Even shares under lower and upper bounds: the lowest are raised first."""

from collections.abc import Sequence


def fill(total: int, floors: Sequence[int], caps: Sequence[int]) -> tuple[int, ...] | None:
    """Split `total` into one share for each place, as even as the bounds allow.

    Every share lies between its floor and its cap; shares between their bounds differ by at most one, and
    the first places get the remainder. None when the floors or the caps do not allow the total.
    """
    tops = [max(floor, cap) for floor, cap in zip(floors, caps, strict=True)]
    if not sum(floors) <= total <= sum(tops):
        return None
    level = _level(total, floors, tops)
    shares = [_clamp(level, floor, top) for floor, top in zip(floors, tops, strict=True)]
    rest = total - sum(shares)
    for place, top in enumerate(tops):
        if rest and shares[place] == level and level < top:
            shares[place] += 1
            rest -= 1
    return tuple(shares)


def _level(total: int, floors: Sequence[int], tops: Sequence[int]) -> int:
    """The highest water level whose shares do not exceed `total`."""
    low, high = 0, max(tops, default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(_clamp(middle, floor, top) for floor, top in zip(floors, tops, strict=True)) <= total:
            low = middle
        else:
            high = middle - 1
    return low


def _clamp(level: int, floor: int, top: int) -> int:
    return min(max(level, floor), top)
