"""What is known of stores that answer, and of those that do not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kvpool.adapters.stores.mooncake import MOST_ANSWER_BYTES
from kvpool.api import KVPool
from kvpool.control.store_poller import StorePoller
from kvpool.model.ids import ObjectKey
from tests.builders.objects import a_pool


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


class Master:
    """A master's admin surface, with one segment."""

    def __init__(self) -> None:
        self.keys = 7
        self.answer: bytes | None = None
        """Instead of the segments."""
        self.runner: web.AppRunner | None = None
        self.port = 0

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/get_segments_detail", self._segments)
        app.router.add_get("/metrics", self._metrics)
        self.runner = web.AppRunner(app)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", self.port).start()
        self.port = self.runner.addresses[0][1]

    async def stop(self) -> None:
        assert self.runner is not None
        await self.runner.cleanup()

    async def _segments(self, _: web.Request) -> web.Response:
        if self.answer is not None:
            return web.Response(body=self.answer, content_type="application/json")
        row = {"segment_name": "h:1", "allocator_capacity_bytes": 64, "allocator_used_bytes": 8}
        return web.json_response({"segments": [row]})

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(text=f"master_key_count {self.keys}\n")


@pytest.fixture
async def master() -> AsyncIterator[Master]:
    running = Master()
    await running.start()
    yield running
    await running.stop()


def store_at(port: int) -> dict[str, Any]:
    return {"mooncake": {"master": {"address": "127.0.0.1", "adminPort": port}}}


def pool_of(port: int) -> KVPool:
    return a_pool("chat").with_spec(store=store_at(port)).build()


KEY = ObjectKey("inference", "chat")


async def test_a_store_that_falls_silent_keeps_its_figures_with_their_time(
    session: aiohttp.ClientSession, master: Master
) -> None:
    changes: list[None] = []
    poller = StorePoller(session, lambda *_: (), lambda: changes.append(None))
    await poller.poll([pool_of(master.port)], {})
    before = poller.views()[KEY]
    assert (before.reachable, before.key_count, before.segments[0].used_bytes) == (True, 7, 8)
    await master.stop()
    await poller.poll([pool_of(master.port)], {})
    after = poller.views()[KEY]
    assert not after.reachable
    assert after.message
    assert (after.asked_at, after.key_count, after.segments) == (before.asked_at, 7, before.segments)
    assert len(changes) == 2
    await master.start()


async def test_a_store_that_never_answered_is_unknown_and_not_empty(session: aiohttp.ClientSession) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        poller = StorePoller(session, lambda *_: (), lambda: None)
        await poller.poll([pool_of(nobody.getsockname()[1])], {})
    view = poller.views()[KEY]
    assert (view.reachable, view.key_count) == (False, None)


async def test_a_store_that_lost_all_its_keys_is_noted(
    session: aiohttp.ClientSession, master: Master
) -> None:
    poller = StorePoller(session, lambda *_: (), lambda: None)
    await poller.poll([pool_of(master.port)], {})
    master.keys = 0
    await poller.poll([pool_of(master.port)], {})
    assert poller.views()[KEY].keys_lost_at is not None


async def test_another_store_is_no_later_state_of_the_one_before(
    session: aiohttp.ClientSession, master: Master
) -> None:
    other = Master()
    other.keys = 0
    await other.start()
    poller = StorePoller(session, lambda *_: (), lambda: None)
    await poller.poll([pool_of(master.port)], {})
    await poller.poll([pool_of(other.port)], {})
    await other.stop()
    view = poller.views()[KEY]
    assert (view.key_count, view.keys_lost_at) == (0, None)
    await poller.poll([a_pool("chat").build()], {})
    assert poller.views() == {}, "a pool without a store has none"


async def test_a_master_that_hangs_keeps_no_other_from_being_known(
    session: aiohttp.ClientSession, master: Master
) -> None:
    async def never(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    hung = await asyncio.start_server(never, "127.0.0.1", 0)
    silent = a_pool("silent").with_spec(store=store_at(hung.sockets[0].getsockname()[1])).build()
    known = asyncio.Event()
    poller = StorePoller(session, lambda *_: (), known.set)
    polling = asyncio.create_task(poller.poll([silent, pool_of(master.port)], {}))
    await asyncio.wait_for(known.wait(), 30)
    assert not polling.done()
    assert set(poller.views()) == {KEY}
    await polling
    assert not poller.views()[ObjectKey("inference", "silent")].reachable
    hung.close()


@pytest.mark.parametrize("address", ["a..b", "x" * 64, "no host", "[::1", "ho/st", "@", "\N{SNOWMAN}", "h:1"])
async def test_an_address_that_can_be_none_is_said_and_harms_no_other_pool(
    session: aiohttp.ClientSession, master: Master, address: str
) -> None:
    odd = a_pool("odd").with_spec(store={"mooncake": {"master": {"address": address}}}).build()
    poller = StorePoller(session, lambda *_: (), lambda: None)
    await poller.poll([odd, pool_of(master.port)], {})
    assert poller.views()[KEY].reachable
    said = poller.views()[ObjectKey("inference", "odd")]
    assert not said.reachable
    assert address in said.message


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\xfe\x00",
        b"null",
        b'{"segments": null}',
        b'{"segments": [1]}',
        b'{"segments": ["segment_name"]}',
        b'{"segments": [{"segment_name": "h:1", "allocator_used_bytes": -5}]}',
        b'{"segments": [{"segment_name": "h:1", "allocator_used_bytes": 1e400}]}',
        b'{"segments": [{"segment_name": "h:1", "allocator_used_bytes": 18446744073709551615}]}',
        b'{"segments": [{"segment_name": "h:1", "allocator_used_bytes": "all"}]}',
        b'{"segments": [' + b" " * MOST_ANSWER_BYTES + b"]}",
    ],
)
async def test_a_master_that_answers_nonsense_is_not_reachable_and_keeps_its_last_figures(
    session: aiohttp.ClientSession, master: Master, answer: bytes
) -> None:
    poller = StorePoller(session, lambda *_: (), lambda: None)
    await poller.poll([pool_of(master.port)], {})
    master.answer = answer
    await poller.poll([pool_of(master.port)], {})
    view = poller.views()[KEY]
    assert not view.reachable
    assert "/get_segments_detail" in view.message
    assert (view.key_count, view.segments[0].used_bytes) == (7, 8)


async def test_a_count_of_keys_beyond_all_numbers_is_unknown(
    session: aiohttp.ClientSession, master: Master
) -> None:
    master.keys = int("9" * 400)
    poller = StorePoller(session, lambda *_: (), lambda: None)
    await poller.poll([pool_of(master.port)], {})
    view = poller.views()[KEY]
    assert (view.reachable, view.key_count) == (True, None)


async def test_a_pool_that_went_is_forgotten(session: aiohttp.ClientSession, master: Master) -> None:
    poller = StorePoller(session, lambda *_: (), lambda: None)
    await poller.poll([pool_of(master.port)], {})
    await poller.poll([], {})
    assert poller.views() == {}
