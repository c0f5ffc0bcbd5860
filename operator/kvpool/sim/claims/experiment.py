"""How a claim is run again: its parameters, the traces it needs, and the function that holds it to its gate.

A module of experiments defines, for each claim, a frozen pydantic model of its parameters, and a constant
`EXPERIMENTS`, a tuple of :class:`Experiment`. The values are in `parameters/<number>.yaml` beside the
modules: the full setting, and under `reduced` what differs in the short one. No file is read here: whoever
runs an experiment hands in its parameters and workloads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from kvpool.sim.claims.row import Claim, ClaimRow
from kvpool.sim.workloads.request import Workload

Whole = Annotated[int, Field(ge=1)]
"""One of several sizes or numbers of things."""
Above = Annotated[float, Field(gt=0)]
"""One of several rates, factors or times."""
Share = Annotated[float, Field(ge=0, le=1)]
_SEED: Final = "seed"


class Parameters(BaseModel):
    """Parameters of one claim. Fields of a subclass have units in their names and say what they are.

    No number but the seed is below 0 or without end, and no list is empty: a gate that is held against
    nothing would always hold.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int = 1
    """Every random number comes from it."""

    @field_validator("*")
    @classmethod
    def _says_something(cls, value: object, info: ValidationInfo) -> object:
        for each in value if isinstance(value, tuple) else (value,):
            if info.field_name != _SEED and isinstance(each, int | float) and each < 0:
                raise ValueError(f"{each} is below 0")
        if value == ():
            raise ValueError("it is empty: write one value at least")
        return value


@dataclass(frozen=True, slots=True)
class Experiment:
    """One claim, and how it is run again."""

    claim: Claim
    parameters: type[Parameters]
    """Its fields are the keys of the claim's file."""
    run: Callable[[Any, Mapping[str, Workload]], ClaimRow]
    """Takes the parameters and the workloads by the name of their trace; pure."""
    traces: tuple[str, ...] = ()
    """Traces that it needs: `conversation`, `synthetic`, `weka`, `azure-conv`, `azure-code`, `arxiv`."""
