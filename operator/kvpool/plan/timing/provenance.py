"""Where the constants of a timing model are from; nothing is planned with figures of unknown origin."""

from dataclasses import dataclass
from enum import StrEnum

from kvpool.plan.timing.model import TimingModel


class Provenance(StrEnum):
    """How a set of constants came about."""

    FITTED = "Fitted"
    """Fitted to measurements of an engine of this model on this card."""
    DATA_SHEET = "DataSheet"
    """Derived from what the makers state; nothing was run."""
    MEASURED = "Measured"
    """Measured on the machine that it is used for."""


@dataclass(frozen=True, slots=True)
class Constants:
    """A timing model with its origin."""

    timing: TimingModel
    provenance: Provenance
    source: str
    worst_error: float | None = None
    """Largest relative error of the fit; None: not fitted."""
