"""The small HTTP responder of agent and keeper, and who abuses it."""

from __future__ import annotations

import asyncio
import socket
from unittest import mock

from kvpool_keeper.answer import REQUEST_SECONDS, Answer, Responder

LARGE = Answer(200, b"x" * (32 << 20))
"""More than the kernel takes for a client that does not read."""
SMALL = Answer(200, b"small\n")
REQUEST = b"GET %b HTTP/1.1\r\n\r\n"


async def ask(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read(1 << 16)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@mock.patch("kvpool_keeper.answer.MOST_CONNECTIONS", 2)
async def test_who_does_not_read_its_answer_is_cut_off_and_takes_no_place() -> None:
    responder = Responder({"/large": lambda: LARGE, "/small": lambda: SMALL})
    port = await responder.start("127.0.0.1", 0)
    greedy = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]
    try:
        for client in greedy:
            client.sendall(REQUEST % b"/large")
        async with asyncio.timeout(4 * REQUEST_SECONDS + 10):
            while b"small" not in await ask(port, REQUEST % b"/small"):  # noqa: ASYNC110 - the answer is the event
                await asyncio.sleep(0.1)
    finally:
        for client in greedy:
            client.close()
        await responder.stop()


async def test_a_client_that_holds_a_connection_does_not_hold_up_the_end() -> None:
    responder = Responder({"/large": lambda: LARGE})
    port = await responder.start("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port)) as greedy:
        greedy.sendall(REQUEST % b"/large")
        await asyncio.sleep(0)
        async with asyncio.timeout(REQUEST_SECONDS / 2):
            await responder.stop()


async def test_odd_requests_get_a_refusal_or_nothing_and_the_next_one_its_answer() -> None:
    responder = Responder({"/small": lambda: SMALL})
    port = await responder.start("127.0.0.1", 0)
    try:
        for odd in (
            b"\r\n\r\n",
            b"GET\r\n\r\n",
            b"POST /small HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
            b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
        ):
            status = (await ask(port, odd)).split(b" ")[1]
            assert status in (b"404", b"405"), odd
        assert await ask(port, b"GET /" + b"a" * (1 << 16) + b" HTTP/1.1\r\n\r\n") == b""
        assert b"small" in await ask(port, REQUEST % b"/small?query=1")
    finally:
        await responder.stop()
