"""A trouble that lasts is logged once; another one is logged again."""

from __future__ import annotations

from structlog.testing import capture_logs

from kvpool.cluster.errors import Gone, Retryable, Terminal
from kvpool.control.complaints import Complaints

FORBIDDEN = Terminal("LIST remaps", 403, "Forbidden", "no rule")
MISSING = Gone("LIST remaps", 404, "NotFound", "no such kind")


def test_an_error_that_lasts_is_said_once_with_its_message() -> None:
    complaints = Complaints()
    with capture_logs() as logs:
        for _ in range(3):
            complaints.note("remaps", FORBIDDEN)
    (said,) = logs
    assert said["what"] == "remaps"
    assert "no rule" in said["error"]


def test_another_error_another_subject_and_the_end_are_said() -> None:
    complaints = Complaints()
    with capture_logs() as logs:
        complaints.note("remaps", FORBIDDEN)
        complaints.note("remaps", MISSING)
        complaints.note("pods", Retryable("LIST pods", 0, "", "cut"))
        complaints.note("remaps", None)
        complaints.note("remaps", None)
    assert [(log["what"], log["log_level"]) for log in logs] == [
        ("remaps", "warning"),
        ("remaps", "warning"),
        ("pods", "warning"),
        ("remaps", "info"),
    ]
