"""How much a result hangs on each constant: the result with that one halved, and doubled.

    width = max(|f(c / 2) - f(c)|, |f(2 c) - f(c)|) / |f(c)|

kvpool's own measure: one constant at a time, the others as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Swing:
    """What one constant does to a result."""

    name: str
    halved: float
    as_it_is: float
    doubled: float

    @property
    def width(self) -> float:
        """The larger change, as a share of the result as it is; infinite when only that is zero."""
        change = max(abs(self.halved - self.as_it_is), abs(self.doubled - self.as_it_is))
        if self.as_it_is == 0:
            return float("inf") if change else 0.0
        return change / abs(self.as_it_is)


def sensitivity(
    result: Callable[[Mapping[str, float]], float], constants: Mapping[str, float]
) -> Sequence[Swing]:
    """Call `result` with each constant at half and at twice its value; widest swing first, then by name."""
    as_it_is = result(constants)
    swings = [
        Swing(
            name,
            result({**constants, name: value / 2}),
            as_it_is,
            result({**constants, name: value * 2}),
        )
        for name, value in constants.items()
    ]
    return sorted(swings, key=lambda swing: (-swing.width, swing.name))
