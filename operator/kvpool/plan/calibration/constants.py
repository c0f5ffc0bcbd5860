"""Constants with their provenance: who says so, by which method, when, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kvpool.plan.calibration.transfer_curve import TransferCurve


class Source(StrEnum):
    """Where a constant is from."""

    MEASURED = "Measured"
    """Measured here, without a model."""
    FITTED = "Fitted"
    """From a serving engine's own figures."""
    DATA_SHEET = "DataSheet"
    """From the maker's data sheet; nothing was measured."""
    NOT_MEASURED = "NotMeasured"
    """Unknown; the reason is beside it."""


@dataclass(frozen=True, slots=True)
class Constant:
    """One figure."""

    name: str
    """Parts from general to special, joined by dots: `host.memory.node0.copy`."""
    unit: str
    """`bytes/s`, `ns`, `ns/token`, `flop/s`."""
    source: Source
    value: float | None = None
    """None exactly when the source is NotMeasured."""
    low: float | None = None
    high: float | None = None
    """95 % interval of the value, or the range that was seen; None: not known."""
    samples: int = 0
    method: str = ""
    """How it was measured, or which data sheet says so."""
    reason: str = ""
    """Why it was not measured, or what to bear in mind."""
    curve: TransferCurve | None = None
    """Times by size, where one figure would hide them."""

    def __post_init__(self) -> None:
        """Refuse a figure that nobody stands behind.

        Raises:
            ValueError: when value and source contradict each other.
        """
        if (self.value is None) != (self.source is Source.NOT_MEASURED):
            raise ValueError(f"{self.name}: value {self.value} from source {self.source}")


@dataclass(frozen=True, slots=True)
class Calibration:
    """All constants of one machine, at one time."""

    date: str
    """RFC 3339, in UTC."""
    machine: Mapping[str, str]
    """What it was measured on: card, driver, engine version, processors, memory, limits."""
    constants: Sequence[Constant] = field(default=())

    def value(self, name: str) -> float | None:
        """The value of a constant; None when it is not there or was not measured."""
        return next((constant.value for constant in self.constants if constant.name == name), None)


def from_fit(
    names: Sequence[str], values: Sequence[float], half_widths: Sequence[float], samples: int, method: str
) -> Sequence[Constant]:
    """Constants of a fitted model, in nanoseconds, with their 95 % intervals."""
    return tuple(
        Constant(name, "ns", Source.FITTED, value, value - half, value + half, samples, method)
        for name, value, half in zip(names, values, half_widths, strict=True)
    )
