"""Counts of tokens as people write them: `32000`, `32k` (which is 32,000) and `32Ki` (which is 32,768)."""

import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator

_SHAPE: Final = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(k|M|Ki|Mi)?")
_SCALE: Final = {None: 1, "k": 10**3, "M": 10**6, "Ki": 2**10, "Mi": 2**20}


def parse_tokens(text: str) -> int:
    """Return the tokens that ``text`` stands for; units are those of quantities, as sizes have them.

    Raises:
        ValueError: when it is no count, or not a whole one.
    """
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text[:40]!r} is no count of tokens: write 32000, 32k (32,000) or 32Ki (32,768)")
    exact = Decimal(match[1]) * _SCALE[match[2]]
    if exact != exact.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number of tokens")
    return int(exact)


def _read(value: object) -> object:
    return parse_tokens(value) if isinstance(value, str) else value


TokenCount = Annotated[int, BeforeValidator(_read)]
"""A whole number, or a text that `parse_tokens` reads."""
