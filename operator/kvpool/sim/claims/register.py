"""Every claim that can be run again, in the order of their numbers."""

from typing import Final

from kvpool.sim.claims import (
    admission,
    borrowed_memory,
    capacity,
    checkpoints,
    eviction,
    exclusive_tiers,
    fabric,
    large_batch,
    layers,
    narrow_numbers,
    router_limits,
    routing,
    serving,
)
from kvpool.sim.claims.experiment import Experiment

_MODULES: Final = (
    admission,
    borrowed_memory,
    capacity,
    checkpoints,
    eviction,
    exclusive_tiers,
    fabric,
    large_batch,
    layers,
    narrow_numbers,
    router_limits,
    routing,
    serving,
)


def _by_number(experiment: Experiment) -> tuple[str, int, str]:
    """C2 before C10, and C claims before E ones."""
    number = experiment.claim.number
    digits = "".join(letter for letter in number if letter.isdigit())
    return number[0], int(digits), number


EXPERIMENTS: Final[tuple[Experiment, ...]] = tuple(
    sorted((one for module in _MODULES for one in module.EXPERIMENTS), key=_by_number)
)
