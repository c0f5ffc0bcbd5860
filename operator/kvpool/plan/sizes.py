"""Sizes as plans use them: whole mebibytes for units, quantities for people."""

from collections.abc import Iterable
from typing import Final

from kvpool.api.quantity import format_quantity, parse_quantity

MEBIBYTE: Final = 1 << 20

_LADDER: Final = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


def bytes_or_none(text: str) -> int | None:
    """Return the bytes of a quantity; None when it is none, or not whole bytes."""
    try:
        return parse_quantity(text)
    except ValueError:
        return None


def short_size(size_bytes: int) -> str:
    """Return a size for sentences: exact when that is short, else to two decimals: `1.25Ti`."""
    exact = format_quantity(size_bytes)
    if len(exact) <= len("1023Gi"):
        return exact
    for suffix, scale in _LADDER:
        if abs(size_bytes) >= scale:
            return f"{size_bytes / scale:.2f}{suffix}"
    return exact


def listed(names: Iterable[str], most: int = 4) -> str:
    """Join names for a sentence, naming at most `most` of them: `a, b and 3 more`."""
    known = sorted(names)
    if len(known) <= most:
        return ", ".join(known)
    return f"{', '.join(known[:most])} and {len(known) - most} more"
