"""What the status of a running group says of its ratio: the one in place, the one it should have, and why."""

from dataclasses import dataclass

from kvpool.plan.ratio.rates import Impossible, Roles
from kvpool.plan.ratio.recommendation import Asked, recommend, recommend_beside
from kvpool.plan.ratio.split import Split


@dataclass(frozen=True, slots=True)
class RatioStatus:
    """Ratios as prefill to decode instances, such as `3/2`."""

    current: str
    recommended: str
    """Empty when no ratio would do."""
    limited_by: str
    text: str
    """For people: the figures behind it, or which limit is broken and by how much."""
    violates_bounds: bool
    """The ratio in place is outside the bounds that were asked for."""


def ratio_status(prefill: int, decode: int, roles: Roles, asked: Asked) -> RatioStatus:
    """Judge a group that runs so many instances of each role; either may be 0 while it starts."""
    if prefill and decode:
        current = Split(prefill, decode)
        found = recommend_beside(current, roles, asked)
        violates = not asked.bounds.allow(current)
    else:
        found, violates = recommend(roles, asked), False
    text = f"{prefill}/{decode}"
    if isinstance(found, Impossible):
        return RatioStatus(text, "", found.limit.value, found.text, violates)
    return RatioStatus(text, str(found.split), found.limited_by.value, found.text, violates)
