"""Times of transfers of several sizes: the line `t = setup + n / bandwidth`, and the points that it misses.

The line is fitted to relative errors, so that small transfers count as much as large ones. What a line cannot
show (a cache, a threshold where a protocol changes) stays visible: the points are kept, and answers come from
them. Source: kvpool's own.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from kvpool.plan.timing.model import NS_PER_SECOND, LinkModel


@dataclass(frozen=True, slots=True)
class Point:
    """Transfers of one size."""

    size_bytes: int
    spent_ns: int
    """Median."""
    low_ns: int
    """10th percentile."""
    high_ns: int
    """90th percentile."""
    samples: int


@dataclass(frozen=True, slots=True)
class TransferCurve:
    """Points in ascending order of size, and the line through them."""

    points: tuple[Point, ...]
    line: LinkModel
    worst_error: float
    """Largest |line - point| / point."""

    def transfer_ns(self, size_bytes: int) -> int:
        """Time of a transfer: between points along straight lines, beyond them at the fitted rate."""
        if size_bytes <= 0:
            return 0
        sizes = [point.size_bytes for point in self.points]
        at = bisect_left(sizes, size_bytes)
        if at == len(sizes):
            last = self.points[-1]
            return last.spent_ns + _sent_ns(size_bytes - last.size_bytes, self.line)
        right = self.points[at]
        if at == 0 or right.size_bytes == size_bytes:
            return right.spent_ns
        left = self.points[at - 1]
        share = (size_bytes - left.size_bytes) / (right.size_bytes - left.size_bytes)
        return round(left.spent_ns + share * (right.spent_ns - left.spent_ns))


def fit_curve(points: Sequence[Point]) -> TransferCurve:
    """Fit the line through points of at least two sizes; a set-up time below 0 becomes 0.

    Raises:
        ValueError: for fewer than two sizes, or when large transfers are not slower than small ones.
    """
    ordered = tuple(sorted(points, key=lambda point: point.size_bytes))
    if len({point.size_bytes for point in ordered}) < 2:
        raise ValueError("a line needs transfers of at least two sizes")
    setup, slope = _line(ordered)
    if setup < 0:
        setup, slope = 0.0, _slope_from_zero(ordered)
    if slope <= 0:
        raise ValueError(
            f"{ordered[-1].size_bytes} bytes took no longer than {ordered[0].size_bytes}: that gives no rate"
        )
    line = LinkModel(round(setup), max(1, round(NS_PER_SECOND / slope)))
    worst = max(
        abs(line.transfer_ns(point.size_bytes) - point.spent_ns) / point.spent_ns for point in ordered
    )
    return TransferCurve(ordered, line, worst)


def _line(points: Sequence[Point]) -> tuple[float, float]:
    """Set-up and time a byte by least squares of relative errors: weights 1 / t^2."""
    ones = ns = sizes = squares = products = 0.0
    for point in points:
        weight = 1.0 / point.spent_ns**2
        ones += weight
        ns += weight * point.spent_ns
        sizes += weight * point.size_bytes
        squares += weight * point.size_bytes**2
        products += weight * point.size_bytes * point.spent_ns
    slope = (ones * products - sizes * ns) / (ones * squares - sizes * sizes)
    return (ns - slope * sizes) / ones, slope


def _slope_from_zero(points: Sequence[Point]) -> float:
    """Time a byte without set-up, by the same weights."""
    ratios = [point.size_bytes / point.spent_ns for point in points]
    return sum(ratios) / sum(ratio * ratio for ratio in ratios)


def _sent_ns(size_bytes: int, line: LinkModel) -> int:
    return size_bytes * NS_PER_SECOND // line.bytes_per_second
