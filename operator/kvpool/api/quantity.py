"""Kubernetes quantities as whole bytes, both ways.

Source: the Kubernetes API reference, "Quantity". Sizes of memory are whole bytes here: a quantity that is
not (``1.5`` or ``100m``) is refused.
"""

import re
from decimal import Decimal
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from kvpool.api.schema import Cel

_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_SCALE: Final = {**_BINARY, **_DECIMAL}
_SHAPE: Final = re.compile(r"^([+-]?\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$")

QUANTITY_PATTERN: Final = r"^[0-9]+(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$"

WHOLE_PATTERN: Final = QUANTITY_PATTERN.replace(r"(\.[0-9]+)?", "")

_LONGEST: Final = 32

LEAST_SIZE_BYTES: Final = 2**20
SIZE_END_BYTES: Final = 2**63
"""8Ei: sizes are below it."""

Quantity = Annotated[str, Field(max_length=_LONGEST, pattern=QUANTITY_PATTERN)]

WholeBytes = Annotated[str, Field(max_length=_LONGEST, pattern=WHOLE_PATTERN)]
"""A quantity that kvpool writes with `format_quantity`: never a fraction."""


# CEL's isInteger() denies some large whole quantities (900Ti), so the fraction is looked at here.
_APPROXIMATELY = "quantity(self).asApproximateFloat()"

Size = Annotated[
    Quantity,
    Cel(
        "isQuantity(self)",
        message_expression="'%s is no size: write 256Gi, 1.5Ti or 4096'.format([self])",
    ),
    Cel(
        "!isQuantity(self) || (quantity(self).isLessThan(quantity('8Ei')) && "
        f"double(int({_APPROXIMATELY})) == {_APPROXIMATELY})",
        message_expression="'%s is not a whole number of bytes, or is 8Ei and more'.format([self])",
    ),
]
"""A quantity that people write: a whole number of bytes below 8Ei."""

PositiveSize = Annotated[
    Size,
    Cel(
        "!isQuantity(self) || quantity(self).compareTo(quantity('1Mi')) >= 0",
        message_expression="'a size must be 1Mi or more, not %s'.format([self])",
    ),
]


def parse_quantity(text: str) -> int:
    """Return the bytes that ``text`` (``256Gi``, ``1.5Ti``, ``1000``) stands for.

    Raises:
        ValueError: when it is no quantity, or not a whole number of bytes.
    """
    match = _SHAPE.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a quantity: write a size such as 256Gi, 1.5Ti or 4096")
    exact = Decimal(match[1]) * _SCALE[match[2] or ""]
    if exact != exact.to_integral_value():
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(exact)


def _read(value: object) -> object:
    return parse_quantity(value) if isinstance(value, str) else value


ByteCount = Annotated[int, BeforeValidator(_read), Field(ge=0, lt=SIZE_END_BYTES)]
"""A whole number of bytes, or a text that `parse_quantity` reads; below 8Ei."""


def parse_size(text: str) -> int:
    """Return the bytes of a size in a flag, within what the API takes as a `PositiveSize`.

    Raises:
        ValueError: when the API would refuse it.
    """
    if len(text) > _LONGEST or re.fullmatch(QUANTITY_PATTERN, text) is None:
        shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise ValueError(f"{shown!r} is no size: write 256Gi, 1.5Ti or 4096Mi")
    size_bytes = parse_quantity(text)
    if not LEAST_SIZE_BYTES <= size_bytes < SIZE_END_BYTES:
        raise ValueError(f"a size must be 1Mi or more and below 8Ei, not {text}")
    return size_bytes


def format_quantity(size_bytes: int) -> str:
    """Return the shortest exact quantity: ``274877906944`` is ``256Gi``, ``1000`` stays ``1000``."""
    for suffix, scale in reversed(_BINARY.items()):
        if size_bytes and size_bytes % scale == 0:
            return f"{size_bytes // scale}{suffix}"
    return str(size_bytes)
