"""How a claim is run again: its parameters, the traces it needs, and the function that holds it to its gate.

A module of experiments defines, for each claim, a frozen pydantic model of its parameters, and a constant
`EXPERIMENTS`, a tuple of :class:`Experiment`. The values are in `parameters/<number>.yaml` beside the
modules: the full setting, and under `reduced` what differs in the short one. No file is read here: whoever
runs an experiment hands in its parameters and workloads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from kvpool.sim.claims.row import Claim, ClaimRow
from kvpool.sim.workloads.request import Workload


class Parameters(BaseModel):
    """Parameters of one claim. Fields of a subclass have units in their names and say what they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = 1
    """Every random number comes from it."""


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
