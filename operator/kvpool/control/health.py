"""Liveness, readiness and metrics over HTTP.

Liveness fails when the event loop lags, when a watch has been silent too long, when the oldest ready key of
the queue is too old, or when a loop has only faulted for too long: a process that answers HTTP and does
nothing else is not alive.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

LAG_LIMIT_SECONDS: Final = 5.0


class Health:
    """Answers `/healthz`, `/readyz` and `/metrics` on one port."""

    def __init__(
        self, registry: CollectorRegistry, alive: Callable[[], list[str]], ready: Callable[[], bool]
    ) -> None:
        self._registry = registry
        self._alive = alive
        self._ready = ready
        self._beat = time.monotonic()
        self._runner: web.AppRunner | None = None

    async def start(self, address: str, port: int) -> None:
        """Listen. Raises OSError."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, address, port).start()

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def beat(self) -> None:
        """Note every second that the event loop turns, until cancelled."""
        while True:
            self._beat = time.monotonic()
            await asyncio.sleep(1.0)

    async def _healthz(self, _: web.Request) -> web.Response:
        lag = time.monotonic() - self._beat
        wrong = self._alive() + ([f"event loop lags {lag:.1f} s"] if lag > LAG_LIMIT_SECONDS else [])
        return web.Response(status=500 if wrong else 200, text="\n".join(wrong) or "ok")

    async def _readyz(self, _: web.Request) -> web.Response:
        ready = self._ready()
        return web.Response(status=200 if ready else 503, text="ok" if ready else "starting")

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), content_type="text/plain", charset="utf-8")
