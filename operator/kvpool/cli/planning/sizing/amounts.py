"""Amounts as people read them: counts, bytes, times, money."""

import math
from typing import Final

NONE: Final = "-"
_BYTES: Final = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))

_TIMES: Final = (
    (1.728e14, 8.64e13, "d"),
    (7.2e12, 3.6e12, "h"),
    (1.2e11, 6e10, "min"),
    (1e9, 1e9, "s"),
    (1e6, 1e6, "ms"),
)
"""From which nanoseconds on, in nanoseconds, which unit."""


def count_text(count: int | None) -> str:
    """`12,031`."""
    return NONE if count is None else f"{count:,}"


def bytes_text(count_bytes: float) -> str:
    """`2.36 GB`, of 10^9 bytes."""
    for scale, name in _BYTES:
        if abs(count_bytes) >= scale:
            return f"{count_bytes / scale:.3g} {name}"
    return f"{count_bytes:.0f} B"


def time_text(nanoseconds: float | None) -> str:
    """`230 ms`, `1.25 s`, `20 min`, `never` for an infinite time."""
    if nanoseconds is None:
        return NONE
    if math.isinf(nanoseconds):
        return "never"
    for least, scale, name in _TIMES:
        if nanoseconds >= least:
            return f"{nanoseconds / scale:.3g} {name}"
    return f"{nanoseconds / 1e3:.3g} us"


def money_text(amount: float | None) -> str:
    """`1,250`, `12.50` or `0.0832`: at least three figures."""
    if amount is None:
        return NONE
    if amount >= 100 or amount == 0:
        return f"{amount:,.0f}"
    return f"{amount:.2f}" if amount >= 1 else f"{amount:.3g}"


def factor_text(factor: float | None) -> str:
    """`73.0x`."""
    if factor is None:
        return NONE
    return f"{factor:,.0f}x" if factor >= 1_000 else f"{factor:.3g}x"
