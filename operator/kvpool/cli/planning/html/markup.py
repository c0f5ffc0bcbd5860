"""Text and elements of HTML and SVG, escaped; what they make is well-formed XML too."""

import re
from html import escape
from typing import Final, NewType

Markup = NewType("Markup", str)
"""Text that may stand in a page as it is."""

_FORBIDDEN: Final = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")
"""Characters that neither HTML nor XML allow, not even escaped."""


def text(words: str) -> Markup:
    """Return words as text of a page; characters that no page may have are replaced."""
    return Markup(escape(_FORBIDDEN.sub("\ufffd", words), quote=True))


def element(name: str, *children: Markup, **attributes: str | float) -> Markup:
    """Return an element. Attributes: `_` becomes `-`, one at the end is dropped (`class_`)."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items()
    )
    if not children:
        return Markup(f"<{name}{written}></{name}>")
    return Markup(f"<{name}{written}>{''.join(children)}</{name}>")


def joined(parts: list[Markup]) -> Markup:
    """One after the other."""
    return Markup("".join(parts))


def number(value: float) -> str:
    """A coordinate: at most one decimal, never `-0`."""
    rounded = f"{value:.1f}".removesuffix(".0")
    return "0" if rounded == "-0" else rounded


def _value(value: str | float) -> str:
    return text(value) if isinstance(value, str) else number(value)
