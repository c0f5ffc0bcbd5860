"""Starts a mock engine as a process of its own and tells what it says over HTTP."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from demo.neighbours.engine_options import EngineOptions
from devcluster.cache import CHECKOUT
from devcluster.process import ManagedProcess

HTTP_SECONDS = 5.0


@dataclass(frozen=True)
class Health:
    """The answer of `/health`."""

    status: int
    state: str
    epoch: int
    accelerator: bool


class EngineProcess:
    """One engine; `process` is its life (start, terminate, kill)."""

    def __init__(self, options: EngineOptions, folder: Path) -> None:
        self.options = options
        self.url = f"http://{options.address}:{options.port}"
        command = [sys.executable, "-m", "demo.neighbours.engine", *options.arguments()]
        log = folder / f"{options.name}.log"
        self.process = ManagedProcess(options.name, command, log, cwd=CHECKOUT)

    def start(self, *, deadline_seconds: float = 20.0) -> EngineProcess:
        """Start it and wait until it listens, its segment mounted. Raises ProcessError."""
        self.process.start()
        self.process.wait_for_port(self.options.port, self.options.address, deadline_seconds)
        return self

    def health(self) -> Health:
        """Ask `/health`. Raises OSError when nothing answers."""
        status, body = self._get("/health")
        told = json.loads(body)
        return Health(status, told["state"], told["epoch"], told["accelerator"])

    def metrics(self) -> str:
        """Return the text of `/metrics`. Raises OSError when nothing answers."""
        return self._get("/metrics")[1]

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(self.url + path, timeout=HTTP_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()
