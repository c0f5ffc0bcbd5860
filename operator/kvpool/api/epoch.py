"""How high epochs can go: a slot epoch is `operatorEpoch * 2**20 + sequence`, and has to fit 64 bits."""

from typing import Annotated, Final

from pydantic import Field

MOST_OPERATOR_EPOCH: Final = 2**42 - 1
"""Every change of leader counts one: nobody comes near."""

OperatorEpoch = Annotated[int, Field(ge=0, le=MOST_OPERATOR_EPOCH)]
"""Which leadership wrote an object."""

SlotEpoch = Annotated[int, Field(ge=0, le=2**62 - 1)]
"""Which holder of a slot is meant."""
