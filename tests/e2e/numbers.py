"""What the tests on real nodes measure: printed after each run, and left as a file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from devcluster.cache import CHECKOUT

FILE = CHECKOUT / "build" / "e2e-numbers.json"


@dataclass
class Numbers:
    """`seconds` and `percent` by what they are of; objects `lost` and stored at each test's last count."""

    seconds: dict[str, float] = field(default_factory=dict)
    lost: dict[str, tuple[int, int]] = field(default_factory=dict)
    percent: dict[str, float] = field(default_factory=dict)

    def report(self, reporter: pytest.TerminalReporter) -> None:
        """Print what there is, if anything, and write it to the file."""
        if not (self.seconds or self.lost or self.percent):
            return
        reporter.section("measured on real nodes")
        for what, took in self.seconds.items():
            reporter.write_line(f"{took:6.1f} s  {what}")
        for test, (lost, stored) in self.lost.items():
            reporter.write_line(f"{lost:3d} of {stored} objects lost  {test}")
        for what, percent in self.percent.items():
            reporter.write_line(f"{percent:6.2f} %  {what}")
        FILE.parent.mkdir(exist_ok=True)
        told = {
            "seconds": self.seconds,
            "objectsLost": {name: lost for name, (lost, _) in self.lost.items()},
            "percent": self.percent,
        }
        FILE.write_text(json.dumps(told, indent=1) + "\n")
