"""One request and a whole workload, whatever they were read from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

INTERACTIVE: Final = "interactive"
BATCH: Final = "batch"


@dataclass(frozen=True, slots=True)
class Request:
    """What one request asks for. Times are from the start of the workload."""

    arrival_ns: int
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()
    """Ids of the prompt's prefix blocks, `Workload.block_tokens` each, the last perhaps partial.

    Equal leading ids are a shared prefix. Empty: nothing is known to be shared.
    """
    slo_class: str = INTERACTIVE
    client: str = ""
    """Who predictions are kept for; empty: everybody together."""
    session: int = -1
    """Requests of a session follow each other; -1: none."""
    think_ns: int = -1
    """From the end of the session's request before it; -1: it comes at `arrival_ns` in any case."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in order of arrival, and where they are from."""

    requests: tuple[Request, ...]
    block_tokens: int
    source: str
    """File name or generator with its parameters."""
    checksum: str
    """SHA-256 of the file, or of the generator's name, parameters and seed."""
    notes: Mapping[str, int] = field(default_factory=dict)
    """What the loader left out or changed, by reason: lines cut, rows with zero tokens."""
