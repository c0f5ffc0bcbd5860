"""Names in files of people, held against what there is, with a suggestion for misspelt ones."""

from collections.abc import Iterable

from pydantic import BeforeValidator

from kvpool.plan.nearest_name import nearest_name


def known_name(kind: str, name: object, names: Iterable[str]) -> str:
    """Return a name that there is.

    Raises:
        ValueError: for another one; the text suggests the nearest, or lists all that there are.
    """
    listed = sorted(names)
    if isinstance(name, str) and name in listed:
        return name
    near = nearest_name(str(name), listed)
    hint = f"did you mean {near!r}?" if near else f"known are {', '.join(listed)}"
    raise ValueError(f"no {kind} {name!r}; {hint}")


def one_of(kind: str, names: Iterable[str]) -> BeforeValidator:
    """Return the check of a model's field that holds one of those names."""
    return BeforeValidator(lambda name: known_name(kind, name, names))
