"""A tiny HTTP responder: GET only, one small answer a connection, bounded in everything."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MOST_CONNECTIONS = 64
REQUEST_SECONDS = 2.0
MOST_REQUEST_BYTES = 8192
REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


@dataclass(frozen=True)
class Answer:
    """What one path answers."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Route = Callable[[], Answer]


class Responder:
    """Serves fixed paths on one address."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        self._routes = routes
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, which is chosen when 0 was asked. Raises OSError."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=MOST_REQUEST_BYTES)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Stop listening, and cut off who is still there."""
        if self._server is not None:
            self._server.close()
            for writer in self._open:
                writer.transport.abort()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if len(self._open) <= MOST_CONNECTIONS:
                async with asyncio.timeout(REQUEST_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(_render(self._answer(head)))
                    await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # whoever asked like this gets no answer
        finally:
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(REQUEST_SECONDS):
                    await writer.wait_closed()
            writer.transport.abort()  # who does not read its answer keeps no place
            self._open.discard(writer)

    def _answer(self, head: bytes) -> Answer:
        words = head.split(b"\r\n", 1)[0].split()
        if len(words) < 2 or words[0] != b"GET":
            return Answer(405, b"only GET\n")
        route = self._routes.get(words[1].split(b"?", 1)[0].decode(errors="replace"))
        return Answer(404, b"no such path\n") if route is None else route()


def _render(answer: Answer) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {REASONS.get(answer.status, 'Unknown')}\r\n"
        f"Content-Type: {answer.content_type}\r\nContent-Length: {len(answer.body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + answer.body
