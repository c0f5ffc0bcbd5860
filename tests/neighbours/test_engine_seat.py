"""A mock engine follows its agent: a seat makes a standby serve, a stop is drained and confirmed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import grpc
import pytest

from demo.neighbours.engine_process import EngineProcess
from kvpool.wire.v1alpha1 import local_pb2, local_pb2_grpc
from tests.harness.waiting import wait_until_async
from tests.neighbours.conftest import StartEngine

SLOT = "inference/decode-1"
SOON_SECONDS = 10.0


class ScriptedAgent(local_pb2_grpc.LocalServiceServicer):
    """The agent's end of the local API, whose words the test chooses."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.heard: asyncio.Queue[local_pb2.AttachRequest] = asyncio.Queue()
        self._to_say: asyncio.Queue[local_pb2.AttachResponse] = asyncio.Queue()
        self._server = grpc.aio.server()

    async def Attach(  # noqa: N802 - the name of the RPC
        self,
        request_iterator: AsyncIterator[local_pb2.AttachRequest],
        context: grpc.aio.ServicerContext[local_pb2.AttachRequest, local_pb2.AttachResponse],
    ) -> AsyncIterator[local_pb2.AttachResponse]:
        async def listen() -> None:
            async for request in request_iterator:
                if request.WhichOneof("message") != "stats":
                    self.heard.put_nowait(request)

        listening = asyncio.create_task(listen())
        try:
            while True:
                yield await self._to_say.get()
        finally:
            listening.cancel()

    async def start(self) -> ScriptedAgent:
        self._server = grpc.aio.server()
        local_pb2_grpc.add_LocalServiceServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{self.socket}")
        await self._server.start()
        return self

    async def die(self) -> None:
        await self._server.stop(None)

    async def hear(self, kind: str) -> local_pb2.AttachRequest:
        """The next message, which must be of that kind."""
        message = await asyncio.wait_for(self.heard.get(), SOON_SECONDS)
        assert message.WhichOneof("message") == kind, message
        return message

    def serve(self, epoch: int, slot: str = SLOT) -> None:
        serve = local_pb2.Serve(slot=slot, epoch=epoch, devices=["0000:01:00.0"])
        self._to_say.put_nowait(local_pb2.AttachResponse(serve=serve))

    def stop(self, epoch: int, slot: str = SLOT) -> None:
        stop = local_pb2.Stop(slot=slot, epoch=epoch, reason="its accelerator failed")
        self._to_say.put_nowait(local_pb2.AttachResponse(stop=stop))

    def lease(self, ttl_ms: int) -> None:
        self._to_say.put_nowait(local_pb2.AttachResponse(lease=local_pb2.Lease(ttl_ms=ttl_ms)))


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[ScriptedAgent]:
    agent = await ScriptedAgent(tmp_path / "local.sock").start()
    yield agent
    await agent.die()


async def health(engine: EngineProcess) -> tuple[int, str, int]:
    told = await asyncio.to_thread(engine.health)
    return told.status, told.state, told.epoch


async def complete(engine: EngineProcess) -> tuple[int, str]:
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{engine.url}/v1/completions", json={"prompt": "a"}) as answer,
    ):
        return answer.status, answer.headers["x-seat-epoch"]


async def start(start_engine: StartEngine, agent: ScriptedAgent, **options: object) -> EngineProcess:
    return await asyncio.to_thread(
        lambda: start_engine(
            local_api=agent.socket,
            pod_uid="uid-1",
            pod_name="inference/decode-1-0",
            devices=("0000:01:00.0",),
            **{"attach_seconds": 0.1, "service_seconds": 0.01, **options},
        )
    )


async def test_a_standby_serves_only_once_it_has_a_seat(
    agent: ScriptedAgent, start_engine: StartEngine
) -> None:
    engine = await start(start_engine, agent, standby=True)
    register = (await agent.hear("register")).register
    assert register.standby
    assert (register.pod_uid, register.pod_name) == ("uid-1", "inference/decode-1-0")
    assert register.endpoint == f"{engine.options.address}:{engine.options.port}"
    assert list(register.devices) == ["0000:01:00.0"]
    assert (register.slot, register.epoch) == ("", 0)
    assert await health(engine) == (503, "standby", 0)
    assert (await complete(engine))[0] == 503

    agent.serve(epoch=7)
    attached = (await agent.hear("attached")).attached
    assert (attached.slot, attached.epoch) == (SLOT, 7)
    assert await health(engine) == (200, "serving", 7)
    assert await complete(engine) == (200, "7")


async def test_an_existing_engine_serves_without_a_seat_and_takes_one_without_a_pause(
    agent: ScriptedAgent, start_engine: StartEngine
) -> None:
    engine = await start(start_engine, agent, attach_seconds=60)
    assert not (await agent.hear("register")).register.standby
    assert await complete(engine) == (200, "0")
    agent.serve(epoch=3)
    assert (await agent.hear("attached")).attached.epoch == 3
    assert await complete(engine) == (200, "3")


async def test_a_stop_refuses_new_requests_drains_the_rest_and_is_then_confirmed(
    agent: ScriptedAgent, start_engine: StartEngine
) -> None:
    engine = await start(start_engine, agent, service_seconds=1)
    await agent.hear("register")
    agent.serve(epoch=3)
    await agent.hear("attached")
    in_flight = asyncio.create_task(complete(engine))

    async def running() -> bool:
        return 'num_requests_running{engine="0",model_name="demo"} 1' in await asyncio.to_thread(
            engine.metrics
        )

    await wait_until_async(running, SOON_SECONDS, "the request to run")
    agent.stop(epoch=3)

    async def draining() -> bool:
        return await health(engine) == (503, "draining", 3)

    await wait_until_async(draining, SOON_SECONDS, "the drain")
    assert (await complete(engine))[0] == 503
    assert agent.heard.empty()
    stopped = (await agent.hear("stopped")).stopped
    assert (stopped.slot, stopped.epoch) == (SLOT, 3)
    assert await in_flight == (200, "3")
    assert await health(engine) == (503, "standby", 0)


async def test_a_stop_during_the_attach_wins_and_nothing_is_served(
    agent: ScriptedAgent, start_engine: StartEngine
) -> None:
    engine = await start(start_engine, agent, standby=True, attach_seconds=60)
    await agent.hear("register")
    agent.serve(epoch=3)

    async def attaching() -> bool:
        return (await health(engine))[1] == "attaching"

    await wait_until_async(attaching, SOON_SECONDS, "the attach")
    agent.stop(epoch=3)
    assert (await agent.hear("stopped")).stopped.epoch == 3
    assert await health(engine) == (503, "standby", 0)


async def test_words_of_an_older_epoch_change_nothing(
    agent: ScriptedAgent, start_engine: StartEngine
) -> None:
    engine = await start(start_engine, agent, standby=True)
    await agent.hear("register")
    agent.serve(epoch=9)
    await agent.hear("attached")
    agent.serve(epoch=8, slot="inference/other")
    agent.stop(epoch=8)
    assert (await agent.hear("stopped")).stopped.epoch == 8  # true: it serves nothing under 8
    assert await health(engine) == (200, "serving", 9)


async def test_an_agent_that_returns_hears_which_seat_is_held(
    agent: ScriptedAgent, start_engine: StartEngine
) -> None:
    engine = await start(start_engine, agent, standby=True)
    await agent.hear("register")
    agent.serve(epoch=5)
    await agent.hear("attached")
    await agent.die()
    assert await complete(engine) == (200, "5")
    await agent.start()
    register = (await agent.hear("register")).register
    assert (register.slot, register.epoch, register.standby) == (SLOT, 5, False)


async def test_a_guarded_engine_stops_by_itself_when_the_lease_runs_out(
    agent: ScriptedAgent, start_engine: StartEngine
) -> None:
    engine = await start(start_engine, agent, standby=True, guarded=True)
    assert (await agent.hear("register")).register.guarded
    agent.lease(ttl_ms=60_000)
    agent.serve(epoch=5)
    await agent.hear("attached")
    agent.lease(ttl_ms=200)
    assert (await agent.hear("stopped")).stopped.epoch == 5
    assert await health(engine) == (503, "standby", 0)
