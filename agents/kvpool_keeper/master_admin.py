"""The little that a keeper asks of a Mooncake master's admin HTTP surface. Every call has a deadline."""

from __future__ import annotations

import contextlib
import http
import http.client
import json
import re
import socket
import threading
from dataclasses import dataclass

ADMIN_TIMEOUT_SECONDS = 2.0
MOST_ANSWER_BYTES = 16 << 20
DRAINED = "SUCCEEDED"
DRAIN_RUNS = frozenset({"CREATED", "PENDING", "PLANNING", "RUNNING"})


class AdminError(Exception):
    """The admin surface did not answer, or answered something else than expected; the message says which."""


class MasterHangsError(AdminError):
    """The admin surface took the question and gave no whole answer in time."""


@dataclass(frozen=True)
class Reading:
    """One look at the master.

    `used_bytes` is None while the master does not know the segment. `pings` counts the heartbeats of all
    clients since the master's start: it only ever grows, unless the master started anew. `remounts` counts
    the segments that clients mounted again after the master had forgotten them; each first mount counts too.
    """

    used_bytes: int | None
    pings: int
    remounts: int = 0


@dataclass(frozen=True)
class SegmentRow:
    """One mounted segment."""

    name: str
    status: str
    te_endpoint: str


class MasterAdmin:
    """Reads one master; `address` is host:port of its admin surface."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._base = f"http://{address}"

    def read(self, segment: str) -> Reading:
        """Return used bytes of `segment` and the master's count of pings. Raises AdminError."""
        return parse_metrics(self._get("/metrics"), segment)

    def segments(self) -> tuple[SegmentRow, ...]:
        """Return the mounted segments. Raises AdminError."""
        rows = self._json("/get_segments_detail").get("segments")
        if not isinstance(rows, list):
            raise AdminError(f"{self._base}/get_segments_detail: no list of segments")
        return tuple(
            SegmentRow(
                str(row.get("segment_name", "")),
                str(row.get("status", "")),
                str(row.get("te_endpoint", "")),
            )
            for row in rows
            if isinstance(row, dict)
        )

    def start_drain(self, segment: str, targets: tuple[str, ...]) -> str:
        """Start to move the objects of `segment` to `targets`; return the job's id. Raises AdminError."""
        body = {"segments": [segment], "target_segments": list(targets), "max_concurrency": 4}
        answer = self._json("/api/v1/drain_jobs", json.dumps(body).encode())
        job = answer.get("job_id")
        if not isinstance(job, str):
            raise AdminError(f"{self._base}/api/v1/drain_jobs: no job_id in {answer!r}")
        return job

    def drain_state(self, job: str) -> str:
        """Return the job's state: one of DRAIN_RUNS, DRAINED, or a way to fail. Raises AdminError."""
        return str(self._json(f"/api/v1/drain_jobs/query?job_id={job}").get("status_name"))

    def _json(self, path: str, body: bytes | None = None) -> dict[str, object]:
        try:
            answer = json.loads(self._get(path, body))
        except (ValueError, RecursionError) as error:
            raise AdminError(f"{self._base}{path}: not JSON: {error}") from error
        if not isinstance(answer, dict):
            raise AdminError(f"{self._base}{path}: not a JSON object")
        return answer

    def _get(self, path: str, body: bytes | None = None) -> str:
        try:
            connection = http.client.HTTPConnection(self._address, timeout=ADMIN_TIMEOUT_SECONDS)
            try:
                return _exchange(connection, path, body).decode(errors="replace")
            finally:
                connection.close()
        except TimeoutError as error:
            raise MasterHangsError(f"{self._base}{path}: no answer in {ADMIN_TIMEOUT_SECONDS:g} s") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise AdminError(f"{self._base}{path}: {error or type(error).__name__}") from error


def _exchange(connection: http.client.HTTPConnection, path: str, body: bytes | None) -> bytes:
    """Ask once. Raises OSError, HTTPException or ValueError.

    The connection's own timeout is for each byte; a master that sends one now and then is cut off in the end.
    """
    connection.connect()
    wire = connection.sock
    is_late = threading.Event()
    end = threading.Timer(ADMIN_TIMEOUT_SECONDS, _cut_off, (wire, is_late))
    end.daemon = True
    end.start()
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        content = answer.read(MOST_ANSWER_BYTES + 1)
    except (OSError, http.client.HTTPException):
        if is_late.is_set():
            raise TimeoutError from None
        raise
    finally:
        end.cancel()
    if is_late.is_set():
        raise TimeoutError
    if answer.status >= http.HTTPStatus.MULTIPLE_CHOICES:
        raise ValueError(f"HTTP {answer.status} {answer.reason}")
    if len(content) > MOST_ANSWER_BYTES:
        raise ValueError(f"the answer is larger than {MOST_ANSWER_BYTES} bytes")
    if answer.length:
        raise ValueError(f"the answer was cut short by {answer.length} bytes")
    return content


def _cut_off(wire: socket.socket, is_late: threading.Event) -> None:
    is_late.set()
    with contextlib.suppress(OSError):
        wire.shutdown(socket.SHUT_RDWR)


def parse_metrics(text: str, segment: str) -> Reading:
    """Find used bytes of `segment` and the ping counter in a master's metrics. Raises AdminError."""
    pings = re.search(r"^master_ping_requests_total(?:\{[^}]*\})? (\d{1,18})\b", text, re.MULTILINE)
    if pings is None:
        raise AdminError("the master's metrics have no master_ping_requests_total")
    label = re.escape(segment)
    used = re.search(rf'^segment_allocated_bytes\{{segment="{label}"\}} (\d{{1,18}})\b', text, re.MULTILINE)
    again = re.search(
        r"^master_remount_segment_requests_total(?:\{[^}]*\})? (\d{1,18})\b", text, re.MULTILINE
    )
    return Reading(int(used[1]) if used else None, int(pings[1]), int(again[1]) if again else 0)
