"""How long a loop of an agent may go without succeeding: the agent's own probe and the operator agree."""

from collections.abc import Mapping
from typing import Final

LOOP_LIMIT_SECONDS: Final = 30.0
"""A loop that has not succeeded for longer is stale, though its process lives."""


def stale_loops(age_seconds: Mapping[str, float], limit_seconds: float) -> dict[str, float]:
    """Return the loops that last succeeded longer ago than the limit, by name, with their ages."""
    return {loop: age for loop, age in sorted(age_seconds.items()) if age > limit_seconds}
