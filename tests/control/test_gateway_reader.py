"""What is asked of a Gateway and of its data plane, and how often."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from kvpool.cluster.apply import Applier
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import create
from kvpool.control.gateway_reader import ADDRESS_SECONDS, GATEWAYS, GatewayReader
from tests.harness.faultproxy import FaultProxy


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def data_plane() -> AsyncIterator[web.AppRunner]:
    """Redirects everything to the host name of revision 7."""

    async def redirect(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "http://revision-7.kvpool.invalid/"})

    app = web.Application()
    app.router.add_get("/{path:.*}", redirect)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner
    await runner.cleanup()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def a_gateway(rest: Rest, namespace: str, port: int) -> None:
    listener = {"name": "web", "port": port, "protocol": "HTTP"}
    metadata = {"name": "edge", "namespace": namespace}
    spec = {"gatewayClassName": "test", "listeners": [listener]}
    await create(rest, GATEWAYS, {"metadata": metadata, "spec": spec}, manager="people")
    status = {"addresses": [{"type": "IPAddress", "value": "127.0.0.1"}]}
    await Applier(rest, "gateway").apply_status(GATEWAYS, {"metadata": metadata, "status": status})


async def test_the_address_is_remembered_for_a_while_and_no_longer_than_it_answers(
    rest: Rest,
    namespace: str,
    session: aiohttp.ClientSession,
    data_plane: web.AppRunner,
    proxy: FaultProxy,
) -> None:
    await a_gateway(rest, namespace, data_plane.addresses[0][1])
    clock = Clock()
    reader = GatewayReader(rest, session, clock)

    async def ask() -> tuple[str | None, int]:
        answer = await reader.redirect_host(namespace, "edge", "", "/probe")
        return answer, len(proxy.seen("GET", f"{namespace}/gateways/edge"))

    assert await ask() == ("revision-7.kvpool.invalid", 1)
    assert await ask() == ("revision-7.kvpool.invalid", 1)
    clock.now += ADDRESS_SECONDS
    assert await ask() == ("revision-7.kvpool.invalid", 2)
    await data_plane.cleanup()
    assert await ask() == ("", 2)
    assert await ask() == ("", 3)


async def test_a_gateway_without_an_address_is_asked_each_time(
    rest: Rest, namespace: str, session: aiohttp.ClientSession, proxy: FaultProxy
) -> None:
    reader = GatewayReader(rest, session)
    for _ in range(2):
        assert await reader.redirect_host(namespace, "edge", "", "/probe") is None
    assert len(proxy.seen("GET", f"{namespace}/gateways/edge")) == 2
