"""Names that scenarios use, held against what there is, with a suggestion for misspelt ones."""

from collections.abc import Iterable
from difflib import get_close_matches


def known_name(kind: str, name: object, names: Iterable[str]) -> str:
    """Return a name that there is.

    Raises:
        ValueError: for another one; the text suggests the nearest, or lists all that there are.
    """
    listed = sorted(names)
    if isinstance(name, str) and name in listed:
        return name
    folded = {one.lower(): one for one in listed}
    near = get_close_matches(str(name).lower(), list(folded), n=1)
    hint = f"did you mean {folded[near[0]]!r}?" if near else f"known are {', '.join(listed)}"
    raise ValueError(f"no {kind} {name!r}; {hint}")
