"""Skips: a closing list of reasons, and KVPOOL_STRICT=1, under which a skip is a failure."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest

EXEMPT_MARKER = "cluster_kind"


def strict() -> bool:
    """True when skips have to fail."""
    return os.environ.get("KVPOOL_STRICT") == "1"


class StrictSkips:
    """Turns skipped tests and modules into failed ones, but for those marked `cluster_kind`."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        expected_failure = hasattr(report, "wasxfail")
        if report.skipped and not expected_failure and item.get_closest_marker(EXEMPT_MARKER) is None:
            report.longrepr = f"KVPOOL_STRICT=1 forbids this skip: {_reason(report.longrepr)}"
            report.outcome = "failed"
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.skipped:
            report.longrepr = f"KVPOOL_STRICT=1 forbids this skip: {_reason(report.longrepr)}"
            report.outcome = "failed"
        return report


def write_skip_reasons(reporter: pytest.TerminalReporter) -> None:
    """Write every reason once, with how many tests it kept from running."""
    reasons = Counter(_reason(report.longrepr) for report in reporter.stats.get("skipped", []))
    if not reasons:
        return
    reporter.section("not run on this machine")
    for reason, count in sorted(reasons.items()):
        reporter.write_line(f"{count:4d} x {reason}")


def _reason(longrepr: object) -> str:
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return str(text).removeprefix("Skipped: ")
