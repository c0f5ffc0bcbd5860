"""Keeps what tests measure, one JSON object a line, for people to sum up."""

from __future__ import annotations

import json
import os
from pathlib import Path

FILE = Path(__file__).resolve().parents[3] / "build" / "figures" / "failover.jsonl"


def record(what: str, **figures: object) -> None:
    """Append one measurement, and print it for `pytest -rP`."""
    line = json.dumps({"what": what, **figures})
    print(line)
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with FILE.open("ab", buffering=0) as stream:  # one write a line: several workers append
        os.write(stream.fileno(), f"{line}\n".encode())
