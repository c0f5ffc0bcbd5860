"""What is said of one published claim after it was run again. How it is run is in `experiment.py`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What kind of statement a claim is."""

    MEASURED = "Measured"
    """A figure that an experiment gives."""
    IDENTITY = "Identity"
    """Arithmetic: it holds because of how it is defined."""
    DIRECTION = "Direction"
    """More or less of something; no figure is held against it."""


class Verdict(StrEnum):
    """What came out."""

    REPRODUCED = "Reproduced"
    PARTLY = "Partly"
    NO = "No"
    IDENTITY = "Identity"
    NOT_RUN = "NotRun"


class Reading(StrEnum):
    """How the source was read."""

    FIRST_HAND = "first hand"
    SECOND_HAND = "second hand"
    ABSTRACT = "abstract"


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody published."""

    number: str
    """`C1` to `C21`, `E1b`."""
    text: str
    source: str
    """Authors, title, number, and the table or section where it is known."""
    reading: Reading
    kind: Kind


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """One claim, run again."""

    claim: Claim
    ours: str
    """Our figures, with units, in one line."""
    band: str
    """The gate that they were held against, in words and figures."""
    verdict: Verdict
    knob: str
    """The input that decides whether it holds; empty when it holds everywhere that was tried."""
    figures: Mapping[str, float] = field(default_factory=dict)
    """The same figures for machines, by name with unit."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each input file, by name."""
    seed: int = 0
