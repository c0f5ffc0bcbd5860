"""An HTTP proxy in front of an API server that breaks requests on demand.

It listens on plain HTTP on loopback and speaks TLS to the server. A request with a bearer token goes on as
that user, one without as the owner of the proxy's own client certificate. It runs in a thread of its own,
so that tests with and without an event loop, and processes, can use it.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from devcluster.rest import Credentials

T = TypeVar("T")

START_SECONDS = 10.0
_HOP_HEADERS = {"connection", "transfer-encoding", "content-length", "content-encoding", "keep-alive", "host"}
_REASONS = {
    401: "Unauthorized",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class Break(Enum):
    """Ways to break a request other than an answer of our own."""

    CUT = "close the connection before the request reaches the server"
    LOSE_ANSWER = "let the server carry the request out, then close the connection"
    STALL = "hold the request, neither passing it on nor answering, until the client gives up"


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer in the server's place with a Status object. `retry_after_seconds` becomes the header."""

    status: int
    retry_after_seconds: int | None = None
    message: str = "injected by the test"


Fault = Break | Answer


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that arrived; `fault` is what was done to it, None when it was passed on."""

    method: str
    path: str
    query: str
    fault: Fault | None


@dataclass(slots=True)
class _Rule:
    fault: Fault
    matches: Callable[[str, str], bool]
    left: int


@dataclass(slots=True)
class _State:
    """What both threads touch; guarded by `lock`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    rules: list[_Rule] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)


class FaultProxy:
    """`with FaultProxy(plane.credentials) as proxy:` then `proxy.kubeconfig(path, token=...)`."""

    def __init__(self, upstream: Credentials) -> None:
        self._upstream = upstream
        self._state = _State()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faultproxy", daemon=True)
        self._open: asyncio.Event | None = None
        self._transports: set[asyncio.Transport] = set()
        self._runner: web.AppRunner | None = None
        self._sessions: list[aiohttp.ClientSession] = []
        self.port = 0

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        self._in_loop(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._in_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_SECONDS)
        self._loop.close()

    @property
    def server(self) -> str:
        """The address that stands for the API server."""
        return f"http://127.0.0.1:{self.port}"

    def kubeconfig(self, path: Path, *, token: str | None = None, token_file: Path | None = None) -> Path:
        """Write a kubeconfig that goes through this proxy: as the token's user, else as the proxy's own."""
        user = {"token": token} if token else {"tokenFile": str(token_file)} if token_file else {}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "proxy", "cluster": {"server": self.server}}],
            "users": [{"name": "proxy", "user": user}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
            "current-context": "proxy",
        }
        path.write_text(yaml.safe_dump(content))
        return path

    def inject(self, fault: Fault, *, times: int = 1, method: str = "", path: str = "") -> None:
        """Break the next `times` requests of that method (any when empty) whose path contains `path`."""

        def matches(its_method: str, its_path: str) -> bool:
            return (not method or its_method == method) and path in its_path

        with self._state.lock:
            self._state.rules.append(_Rule(fault, matches, times))

    def heal(self) -> None:
        """Forget all faults that have not struck yet, and let everything pass again."""
        with self._state.lock:
            self._state.rules.clear()
        self.resume()

    def pause(self) -> None:
        """Let nothing pass either way, new requests and open streams alike; connections stay open."""
        self._in_loop(self._set_open(passing=False))

    def resume(self) -> None:
        """Let everything pass again, beginning with what was held."""
        self._in_loop(self._set_open(passing=True))

    def cut_open(self) -> int:
        """Close the connection of every request now in progress, watches included; returns how many."""
        return self._in_loop(self._cut_open())

    def seen(self, method: str = "", path: str = "") -> list[Seen]:
        """The requests so far, oldest first, of that method and with `path` in their path."""
        with self._state.lock:
            return [
                one for one in self._state.seen if (not method or one.method == method) and path in one.path
            ]

    # Inside the loop

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_SECONDS)

    async def _start(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        for with_certificate in (True, False):
            tls = ssl.create_default_context(cafile=str(self._upstream.ca_file))
            if with_certificate and self._upstream.certificate_file is not None:
                tls.load_cert_chain(self._upstream.certificate_file, self._upstream.key_file)
            connector = aiohttp.TCPConnector(ssl=tls, limit=0)
            self._sessions.append(aiohttp.ClientSession(connector=connector, auto_decompress=False))
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._cut_open()
        if self._runner is not None:
            await self._runner.cleanup()
        for session in self._sessions:
            await session.close()

    async def _set_open(self, *, passing: bool) -> None:
        assert self._open is not None
        if passing:
            self._open.set()
        else:
            self._open.clear()

    async def _cut_open(self) -> int:
        count = len(self._transports)
        for transport in self._transports:
            transport.abort()
        return count

    def _fault_for(self, request: web.Request) -> Fault | None:
        fault = None
        with self._state.lock:
            for rule in self._state.rules:
                if rule.left > 0 and rule.matches(request.method, request.path):
                    rule.left -= 1
                    fault = rule.fault
                    break
            self._state.seen.append(Seen(request.method, request.path, request.query_string, fault))
        return fault

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        if not isinstance(transport, asyncio.Transport):
            raise web.HTTPServiceUnavailable
        self._transports.add(transport)
        try:
            return await self._treat(request, transport)
        finally:
            self._transports.discard(transport)

    async def _treat(self, request: web.Request, transport: asyncio.Transport) -> web.StreamResponse:
        assert self._open is not None
        body = await request.read()
        fault = self._fault_for(request)
        await self._open.wait()
        match fault:
            case Answer():
                return _answer(fault)
            case Break.CUT:
                transport.abort()
                raise ConnectionResetError
            case Break.STALL:
                await asyncio.Event().wait()
        own_user = "Authorization" not in request.headers
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_HEADERS}
        url = self._upstream.server + request.raw_path
        session = self._sessions[0 if own_user else 1]
        timeout = aiohttp.ClientTimeout(total=None)
        call = session.request(
            request.method, URL(url, encoded=True), data=body or None, headers=headers, timeout=timeout
        )
        async with call as upstream:
            if fault is Break.LOSE_ANSWER:
                await upstream.read()
                transport.abort()
                raise ConnectionResetError
            return await self._pass_on(request, upstream)

    async def _pass_on(self, request: web.Request, upstream: aiohttp.ClientResponse) -> web.StreamResponse:
        assert self._open is not None
        kept = {name: value for name, value in upstream.headers.items() if name.lower() not in _HOP_HEADERS}
        if "Content-Encoding" in upstream.headers:
            kept["Content-Encoding"] = upstream.headers["Content-Encoding"]
        response = web.StreamResponse(status=upstream.status, headers=kept)
        await response.prepare(request)
        async for chunk in upstream.content.iter_any():
            await self._open.wait()
            await response.write(chunk)
        await response.write_eof()
        return response


def _answer(fault: Answer) -> web.Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": _REASONS.get(fault.status, ""),
        "message": fault.message,
        "code": fault.status,
    }
    headers = {} if fault.retry_after_seconds is None else {"Retry-After": str(fault.retry_after_seconds)}
    return web.Response(
        status=fault.status, text=json.dumps(status), content_type="application/json", headers=headers
    )
