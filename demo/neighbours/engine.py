"""A mock engine, as a process of its own: completions, health and vLLM's metrics over HTTP, a store segment.

Run as `python -m demo.neighbours.engine --help`. Every answer names the engine in the header `x-engine`.
"""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Callable

from aiohttp import web

from demo.neighbours.accelerators import AcceleratorWatch
from demo.neighbours.engine_duty import Duty, NotServingError, State
from demo.neighbours.engine_headers import ENGINE_HEADER, EPOCH_HEADER
from demo.neighbours.engine_metrics import EngineMetrics
from demo.neighbours.engine_options import EngineOptions, parse_options
from demo.neighbours.engine_seat import Identity, SeatClient
from demo.neighbours.store import join_store

MOST_RUNNING = 64
MOST_WAITING = 256
STORE_BUFFER_BYTES = 1 << 20
DRAIN_SECONDS = 5.0


class Engine:
    """The HTTP side: answers completions while its duty and its accelerators allow."""

    def __init__(self, options: EngineOptions, duty: Duty, devices_work: Callable[[], bool]) -> None:
        self._options = options
        self._duty = duty
        self._devices_work = devices_work
        self._metrics = EngineMetrics(model_name=options.model, most_running=MOST_RUNNING)

    def application(self) -> web.Application:
        """Return the routes as an aiohttp application."""
        application = web.Application()
        application.add_routes(
            [
                web.post("/v1/completions", self.complete),
                web.get("/health", self.health),
                web.get("/metrics", self.metrics),
            ]
        )
        return application

    async def complete(self, request: web.Request) -> web.Response:
        """OpenAI's `POST /v1/completions`, without streaming; one word of the prompt counts as one token."""
        try:
            body = await request.json()
            prompt = str(body.get("prompt", ""))
            output_tokens = int(body.get("max_tokens", 16))
        except (json.JSONDecodeError, AttributeError, TypeError, ValueError) as error:
            return self._refusal(400, f"not a completion request: {error}")
        started = time.monotonic()
        try:
            async with self._duty.one_request():
                if self._devices_work():
                    await asyncio.sleep(self._options.service_seconds)
                if not self._devices_work():
                    return self._refusal(500, "the accelerator does not work")
        except NotServingError as refused:
            return self._refusal(503, str(refused))
        prompt_tokens = max(1, len(prompt.split()))
        self._metrics.count_finished(
            prompt_tokens=prompt_tokens, output_tokens=output_tokens, seconds=time.monotonic() - started
        )
        return web.json_response(
            _completion(self._options.model, prompt_tokens, output_tokens), headers=self._headers()
        )

    async def health(self, _request: web.Request) -> web.Response:
        """200 while it would take a request, else 503 with the state in the body."""
        serving = self._duty.state is State.SERVING and self._devices_work()
        return web.json_response(
            {"state": self._duty.state.value, "epoch": self._duty.epoch, "accelerator": self._devices_work()},
            status=200 if serving else 503,
            headers=self._headers(),
        )

    async def metrics(self, _request: web.Request) -> web.Response:
        """Prometheus text with vLLM's names."""
        self._metrics.show_load(running=self._duty.running, waiting=self._duty.waiting)
        return web.Response(body=self._metrics.render(), content_type="text/plain")

    def _headers(self) -> dict[str, str]:
        return {ENGINE_HEADER: self._options.name, EPOCH_HEADER: str(self._duty.epoch)}

    def _refusal(self, status: int, message: str) -> web.Response:
        error = {"error": {"message": f"{self._options.name}: {message}", "code": status}}
        return web.json_response(error, status=status, headers=self._headers())


def _completion(model: str, prompt_tokens: int, output_tokens: int) -> dict[str, object]:
    return {
        "id": f"cmpl-{time.monotonic_ns():x}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "text": " ok" * output_tokens, "finish_reason": "length"}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": prompt_tokens + output_tokens,
        },
    }


async def serve(options: EngineOptions) -> None:
    """Run the engine until SIGTERM or SIGINT; then drain, so that nothing in flight is cut."""
    duty = Duty(standby=options.standby, most_running=MOST_RUNNING, most_waiting=MOST_WAITING)
    engine = Engine(options, duty, _devices_work(options))
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    runner = web.AppRunner(engine.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, options.address, options.port).start()
    print(f"{options.name}: listening on {options.address}:{options.port}, {duty.state.value}", flush=True)
    following = _follow_agent(options, duty)
    if following is not None:
        following.add_done_callback(lambda _: ended.set())
    await ended.wait()
    if following is not None and not following.cancel():
        following.result()
    await duty.leave_seat(drain_seconds=DRAIN_SECONDS)
    await runner.cleanup()


def _devices_work(options: EngineOptions) -> Callable[[], bool]:
    if options.devices_file is None:
        return lambda: True
    return AcceleratorWatch(options.devices_file, options.devices).work


def _follow_agent(options: EngineOptions, duty: Duty) -> asyncio.Task[None] | None:
    """Start following the local API, when there is one. Its failure ends the engine."""
    if options.local_api is None:
        return None
    identity = Identity(
        pod_uid=options.pod_uid,
        pod_name=options.pod_name,
        endpoint=f"{options.address}:{options.port}",
        devices=options.devices,
        guarded=options.guarded,
        readiness=options.readiness,
    )
    client = SeatClient(
        options.local_api,
        identity,
        duty,
        attach_seconds=options.attach_seconds,
        say=lambda line: print(f"{options.name}: {line}", flush=True),
    )
    return asyncio.create_task(client.run())


def main() -> None:
    """Join the store, serve, and leave the store in order: a killed engine's segment stays until the TTL."""
    options = parse_options(None, __doc__ or "")
    store = None
    if options.master:
        store = join_store(
            local_name=f"{options.address}:{options.store_port}",
            master=options.master,
            segment_bytes=options.segment_bytes,
            buffer_bytes=STORE_BUFFER_BYTES,
        )
    try:
        asyncio.run(serve(options))
    finally:
        if store is not None:
            store.close()


if __name__ == "__main__":
    main()
