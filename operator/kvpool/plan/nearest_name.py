"""Which known name a misspelt one was probably meant to be."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another, whatever its case; None when none is like it."""
    folded = {one.lower(): one for one in sorted(known)}
    near = get_close_matches(name.lower(), list(folded), n=1)
    return folded[near[0]] if near else None
