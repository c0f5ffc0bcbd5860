"""A real Mooncake master, and the little of its admin surface that demo and tests read.

The master is the binary inside the `mooncake-transfer-engine-non-cuda` wheel. It needs Debian's libibverbs1.
"""

from __future__ import annotations

import importlib.util
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from devcluster.process import ManagedProcess, ProcessError, port_answers

ADMIN_TIMEOUT_SECONDS = 2.0


class AdminUnavailableError(RuntimeError):
    """The master's admin surface did not answer, or answered something else than expected."""


@dataclass(frozen=True)
class Segment:
    """All rows of one segment name, as one.

    The master repeats used and capacity bytes of the *name* on each of its rows, so they are taken once;
    `size_bytes` is the sum over the rows.
    """

    name: str
    statuses: tuple[str, ...]
    size_bytes: int
    used_bytes: int
    capacity_bytes: int


class MooncakeAdmin:
    """Reads a master's admin HTTP surface; every call has a deadline."""

    def __init__(self, base_url: str, *, timeout_seconds: float = ADMIN_TIMEOUT_SECONDS) -> None:
        self.base_url = base_url
        self._timeout_seconds = timeout_seconds

    def healthy(self) -> bool:
        """Whether the master answers and says that it serves."""
        try:
            health = json.loads(self._get("/health"))
        except (AdminUnavailableError, json.JSONDecodeError):
            return False
        return health.get("service_ready") is True

    def segments(self) -> tuple[Segment, ...]:
        """Return the segments by name, in name order. Raises AdminUnavailableError."""
        rows_by_name: dict[str, list[dict[str, object]]] = {}
        for row in json.loads(self._get("/get_segments_detail"))["segments"]:
            rows_by_name.setdefault(row["segment_name"], []).append(row)
        return tuple(_one_segment(name, rows) for name, rows in sorted(rows_by_name.items()))

    def key_count(self) -> int:
        """Return the number of objects that the master knows. Raises AdminUnavailableError."""
        found = re.search(r"^master_key_count(?:\{[^}]*\})? (\d+)", self._get("/metrics"), re.MULTILINE)
        if found is None:
            raise AdminUnavailableError(f"{self.base_url}/metrics: no master_key_count")
        return int(found[1])

    def wait_for_segments(
        self, count: int, *, deadline_seconds: float = 10.0, prefix: str = ""
    ) -> tuple[Segment, ...]:
        """Wait until exactly `count` segments whose names begin with `prefix` are mounted; return them.

        Raises TimeoutError with the names that are there instead.
        """
        limit = time.monotonic() + deadline_seconds
        while True:
            found = tuple(segment for segment in self.segments() if segment.name.startswith(prefix))
            if len(found) == count:
                return found
            if time.monotonic() > limit:
                names = [segment.name for segment in found]
                raise TimeoutError(
                    f"{self.base_url}: {count} segments wanted, there are {len(found)}: {names}"
                )
            time.sleep(0.05)

    def _get(self, path: str) -> str:
        try:
            with urllib.request.urlopen(self.base_url + path, timeout=self._timeout_seconds) as answer:
                body: bytes = answer.read()
        except (urllib.error.URLError, OSError) as error:
            raise AdminUnavailableError(f"{self.base_url}{path}: {error}") from error
        return body.decode()


class MooncakeMaster:
    """A running `mooncake_master`; also a context manager that stops it.

    `client_ttl_seconds` is how long a silent client's segments stay; None keeps the master's default (10 s).
    Raises ProcessError when a port is taken: the master itself would say that it serves, and then end
    without a word.
    """

    def __init__(
        self,
        *,
        address: str,
        log_path: Path,
        rpc_port: int = 50051,
        admin_port: int = 9003,
        client_ttl_seconds: int | None = None,
        flags: Sequence[str] = (),
    ) -> None:
        for port in (rpc_port, admin_port):
            if port_answers(port, address):
                raise ProcessError(f"mooncake_master: something else listens on {address}:{port} already")
        self.endpoint = f"{address}:{rpc_port}"
        self.admin = MooncakeAdmin(f"http://{address}:{admin_port}")
        ttl = [] if client_ttl_seconds is None else [f"--client_ttl={client_ttl_seconds}"]
        self.process = ManagedProcess(
            "mooncake_master",
            [
                str(master_binary()),
                f"--rpc_address={address}",
                f"--rpc_port={rpc_port}",
                f"--metrics_host={address}",
                f"--metrics_port={admin_port}",
                *ttl,
                *flags,
            ],
            log_path,
        ).start()

    def wait_ready(self, *, deadline_seconds: float = 15.0) -> None:
        """Wait until the master serves. Raises ProcessError, with its log."""
        self.process.wait_for(self.admin.healthy, deadline_seconds, "to serve")

    def stop(self) -> None:
        """End the master; all objects are forgotten, clients mount again when one returns on the address."""
        self.process.terminate(deadline_seconds=5)

    def __enter__(self) -> MooncakeMaster:
        """Wait until the master serves."""
        try:
            self.wait_ready()
        except BaseException:  # also when interrupted, no master may be left behind; raised on
            self.process.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the master."""
        self.stop()


def master_binary() -> Path:
    """Find `mooncake_master` beside the wheel's Python modules, without importing them.

    Raises FileNotFoundError that says which package is missing.
    """
    spec = importlib.util.find_spec("mooncake")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder) / "mooncake_master"
        if binary.exists():
            return binary
    raise FileNotFoundError(
        "mooncake_master: not found; "
        "install the Python package mooncake-transfer-engine-non-cuda (extra `keeper`)"
    )


def _one_segment(name: str, rows: Sequence[dict[str, object]]) -> Segment:
    def number(row: dict[str, object], field: str) -> int:
        value = row[field]
        if not isinstance(value, int):
            raise AdminUnavailableError(f"segment {name}: {field} is {value!r}, not a number")
        return value

    return Segment(
        name=name,
        statuses=tuple(str(row["status"]) for row in rows),
        size_bytes=sum(number(row, "size_bytes") for row in rows),
        used_bytes=max(number(row, "allocator_used_bytes") for row in rows),
        capacity_bytes=max(number(row, "allocator_capacity_bytes") for row in rows),
    )
