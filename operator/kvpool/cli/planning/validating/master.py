"""A Mooncake master of our own on loopback, which ends with the command that started it."""

import importlib.util
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kvpool.cli.faults import CliError
from kvpool.cli.planning.validating.tied import tied

LOOPBACK: Final = "127.0.0.1"
PACKAGE: Final = "mooncake-transfer-engine-non-cuda"
POLL_SECONDS: Final = 0.05
START_SECONDS: Final = 20.0
STOP_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 2.0
SHOWN_CHARACTERS: Final = 400


class Master:
    """Starts when the block is entered. Raises CliError where Mooncake is not installed or does not start."""

    def __init__(self, folder: Path, flags: Sequence[str]) -> None:
        self._binary = master_binary()
        self._log = folder / "mooncake_master.log"
        self._flags = flags
        self._rpc_port, self._admin_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.endpoint = f"{LOOPBACK}:{self._rpc_port}"

    def __enter__(self) -> Self:
        """Start it, and wait until it serves."""
        command = [
            str(self._binary),
            f"--rpc_address={LOOPBACK}",
            f"--rpc_port={self._rpc_port}",
            f"--metrics_host={LOOPBACK}",
            f"--metrics_port={self._admin_port}",
            *self._flags,
        ]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(tied(command), stdout=log, stderr=subprocess.STDOUT)
        try:
            self._wait(self._process)
        except BaseException:  # also when interrupted, no master may be left behind; raised on
            self._process.kill()
            self._process.wait()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; all that it knew is forgotten."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        limit = time.monotonic() + START_SECONDS
        while not self._serves():
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL_SECONDS)
            if process.poll() is not None or time.monotonic() > limit:
                said = self._log.read_text(errors="backslashreplace")[-SHOWN_CHARACTERS:].strip()
                raise CliError(
                    f"{self._binary.name} did not come to serve within {START_SECONDS:.0f} s: {said}"
                )

    def _serves(self) -> bool:
        address = f"http://{LOOPBACK}:{self._admin_port}/health"
        try:
            with urllib.request.urlopen(address, timeout=ANSWER_SECONDS) as answer:
                health = json.loads(answer.read())
        except (urllib.error.URLError, OSError, ValueError):
            return False
        return isinstance(health, dict) and health.get("service_ready") is True


def master_binary() -> Path:
    """Return the master that is inside the client's package. Raises CliError that says what to install."""
    spec = importlib.util.find_spec("mooncake")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder) / "mooncake_master"
        if binary.exists():
            return binary
    raise CliError(
        f"this needs a real Mooncake, and the Python package {PACKAGE} is not installed: "
        "pip install 'kvpool[keeper]' (Debian's libibverbs1 is needed, too)"
    )


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
    return port
