"""The named generators of workloads, with parameters as scenarios write them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from kvpool.plan.known_name import known_name
from kvpool.sim.workloads.fields import shown
from kvpool.sim.workloads.generators.agents import Agents, agents
from kvpool.sim.workloads.generators.bounds import Factor, Rate, Sigma, Span, Tokens
from kvpool.sim.workloads.generators.branching import Branching, branching
from kvpool.sim.workloads.generators.chat import Chat, chat
from kvpool.sim.workloads.generators.documents import Documents, documents
from kvpool.sim.workloads.generators.mix import Mix, mix
from kvpool.sim.workloads.generators.poisson import Bursts, Lognormal, Poisson, independent
from kvpool.sim.workloads.request import Workload


@dataclass(frozen=True, slots=True)
class Independent:
    """Parameters of requests that share nothing and come independently."""

    rate_per_second: Rate
    seconds: Span
    prompt_tokens: Tokens = 1024
    """Median, lognormal."""
    output_tokens: Tokens = 256
    """Median, lognormal."""
    prompt_sigma: Sigma = 1.0
    """Spread of its logarithm; 0: all alike."""
    output_sigma: Sigma = 1.0
    burst_factor: Factor = 1.0
    """Rate in bursts over the rate between them; 1: none."""


def _independent(parameters: Independent, seed: int) -> Workload:
    rate, factor = parameters.rate_per_second, parameters.burst_factor
    arrivals = Poisson(rate) if factor == 1.0 else Bursts(rate, factor)
    lengths = Lognormal(
        parameters.prompt_tokens,
        parameters.output_tokens,
        parameters.prompt_sigma,
        parameters.output_sigma,
    )
    return independent(arrivals, lengths, parameters.seconds, seed)


@dataclass(frozen=True, slots=True)
class Generator:
    """A generator, and the class of its parameters."""

    parameters: type[Any]
    make: Callable[[Any, int], Workload]


GENERATORS: Final[Mapping[str, Generator]] = {
    "agents": Generator(Agents, agents),
    "branching": Generator(Branching, branching),
    "chat": Generator(Chat, chat),
    "documents": Generator(Documents, documents),
    "independent": Generator(Independent, _independent),
    "mix": Generator(Mix, mix),
}
"""By name."""


def generate(name: str, parameters: Mapping[str, Any], seed: int) -> Workload:
    """Make a workload.

    Raises:
        ValueError: for an unknown generator or parameter, a wrong value, or parameters that make no workload.
    """
    generator = GENERATORS[known_name("generator", name, GENERATORS)]
    there = [field.name for field in fields(generator.parameters)]
    for key in parameters:
        known_name(f"parameter of {name}", key, there)
    try:
        adapter = TypeAdapter(generator.parameters)
        checked = adapter.validate_python(dict(parameters))
    except ValidationError as error:
        told = "; ".join(map(_told, error.errors()))
        raise ValueError(f"parameters of {name}: {told}") from None
    return generator.make(checked, seed)


def _told(fault: ErrorDetails) -> str:
    """`users: Input should be greater than or equal to 1, not 0`."""
    message = fault["msg"].removeprefix("Value error, ")
    if not fault["loc"]:
        return message
    place = ".".join(map(str, fault["loc"]))
    return (
        f"{place}: is missing"
        if fault["type"] == "missing"
        else f"{place}: {message}, not {shown(fault['input'])}"
    )
