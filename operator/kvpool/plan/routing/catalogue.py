"""The routing rules that have a name."""

from collections.abc import Mapping
from typing import Final

from kvpool.plan.routing.completion_time import CompletionTime
from kvpool.plan.routing.counting import LeastLoaded, LeastOutstanding, LengthAware, RoundRobin, Uniform
from kvpool.plan.routing.router import RouterFactory

ROUTERS: Final[Mapping[str, RouterFactory]] = {
    "RoundRobin": lambda draws: RoundRobin(),
    "Uniform": Uniform,
    "LeastOutstanding": lambda draws: LeastOutstanding(),
    "LeastLoaded": lambda draws: LeastLoaded(),
    "LengthAware": lambda draws: LengthAware(),
    "CompletionTime": lambda draws: CompletionTime(),
}
"""By name: what makes the rule for one run."""
