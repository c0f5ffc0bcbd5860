"""The public Unix socket of the local API: knows which process is behind each connection.

gRPC tells nothing of a Unix peer's credentials. So the public socket is accepted here, SO_PEERCRED is read,
and the bytes are passed on to gRPC's own socket, from a socket that is bound to an abstract name of one use.
gRPC shows that name as the peer, and `caller` finds the process by it; whoever finds gRPC's own socket has
no such name and is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

import structlog

log = structlog.get_logger()

SOCKET_MODE = 0o660
CHUNK_BYTES = 64 << 10
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


@dataclass(frozen=True)
class Caller:
    """The process that connected, as the kernel says. pid 0 is a process of a namespace we cannot see."""

    pid: int
    uid: int


class FrontDoor:
    """Accepts at most `most_connections` at once; further ones are closed and counted."""

    def __init__(self, public: Path, most_connections: int) -> None:
        self._public = public
        self._inner = f"kvpool-{os.getpid()}-{secrets.token_hex(8)}"
        self._most_connections = most_connections
        self._callers: dict[str, Caller] = {}
        self._server: asyncio.Server | None = None
        self.turned_away = 0

    @property
    def inner_address(self) -> str:
        """Where gRPC is to listen: an abstract socket, whose length no folder's name adds to."""
        return f"unix-abstract:{self._inner}"

    async def open(self) -> None:
        """Listen on the public socket. Raises OSError.

        It gets its name last, so that nobody ever sees it open to more than its group.
        """
        beside = self._public.with_suffix(".new")
        beside.unlink(missing_ok=True)
        public = socket.socket(socket.AF_UNIX)
        public.bind(str(beside))
        beside.chmod(SOCKET_MODE)
        self._server = await asyncio.start_unix_server(self._pass_on, sock=public)
        beside.replace(self._public)

    async def close(self) -> None:
        """Stop listening; what is connected ends with gRPC's side."""
        if self._server is not None:
            self._server.close()
        with contextlib.suppress(FileNotFoundError):
            self._public.unlink()

    def caller(self, peer: str) -> Caller | None:
        """Return who is behind a gRPC peer; None for a connection that did not come through this door."""
        return self._callers.get(peer.removeprefix("unix-abstract:"))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._callers) >= self._most_connections:
            self.turned_away += 1
            log.warning("local API: too many connections", limit=self._most_connections)
            writer.close()
            return
        pid, uid, _ = CREDENTIALS.unpack(
            writer.get_extra_info("socket").getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size
            )
        )
        name = f"kvpool-{os.getpid()}-{secrets.token_hex(8)}"
        self._callers[name] = Caller(pid, uid)
        try:
            with contextlib.suppress(OSError):
                await self._relay(reader, writer, name)
        finally:
            del self._callers[name]
            writer.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        inner = socket.socket(socket.AF_UNIX)
        inner.setblocking(False)
        inner.bind(f"\0{name}")
        await asyncio.get_running_loop().sock_connect(inner, f"\0{self._inner}")
        inner_reader, inner_writer = await asyncio.open_unix_connection(sock=inner)
        ways = {
            asyncio.create_task(_pump(reader, inner_writer)),
            asyncio.create_task(_pump(inner_reader, writer)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            inner_writer.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK_BYTES):
        target.write(data)
        await target.drain()
