"""What is known of stores that answer, and of those that do not."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

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


def pool_of(port: int) -> KVPool:
    store = {"mooncake": {"master": {"address": "127.0.0.1", "adminPort": port}}}
    return a_pool("chat").with_spec(store=store).build()


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


async def test_a_pool_that_went_is_forgotten(session: aiohttp.ClientSession, master: Master) -> None:
    poller = StorePoller(session, lambda *_: (), lambda: None)
    await poller.poll([pool_of(master.port)], {})
    await poller.poll([], {})
    assert poller.views() == {}
