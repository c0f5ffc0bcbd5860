"""A real Traefik as Gateway API data plane: it shares requests out by weight, and a zero is a zero."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from demo.load import Load, SentRequest
from demo.neighbours.engine_process import EngineProcess
from demo.neighbours.route import EngineEndpoint, engine_service, http_route
from demo.neighbours.traefik import GATEWAY_API, TraefikGateway, route_accepted
from devcluster.controlplane import ControlPlane
from devcluster.ports import free_port
from devcluster.recipe import NotBuiltError
from tests.harness import planes
from tests.harness.waiting import wait_until, wait_until_async
from tests.neighbours.conftest import StartEngine

ENGINES = ("decode-0", "decode-1", "decode-2")
PROBE_PATH = "/.well-known/which-revision"


@pytest.fixture(scope="session")
def gateway(
    control_plane: ControlPlane, own_address: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TraefikGateway]:
    """The one gateway of this worker's control plane."""
    control_plane.install_gateway_api()
    try:
        gateway = TraefikGateway(
            control_plane.admin,
            tmp_path_factory.mktemp("traefik"),
            address=own_address,
            port=free_port(own_address),
            namespace=planes.new_namespace(control_plane, "gateway"),
        )
    except NotBuiltError as missing:
        pytest.skip(str(missing))
    gateway.start()
    yield gateway
    gateway.stop()


@pytest.fixture
def engines(start_engine: StartEngine, own_address: str) -> list[EngineProcess]:
    """Three engines that answer at once."""
    return [start_engine(name=name, address=own_address, service_seconds=0.001) for name in ENGINES]


class Route:
    """The deployment's route to three Services of one engine each."""

    def __init__(
        self, plane: ControlPlane, gateway: TraefikGateway, namespace: str, engines: list[EngineProcess]
    ) -> None:
        self._api = plane.admin
        self._gateway = gateway
        self._namespace = namespace
        for engine in engines:
            endpoint = EngineEndpoint(engine.options.address, engine.options.port)
            for manifest in engine_service(namespace, engine.options.name, [endpoint]):
                self._api.apply(manifest)

    def set_weights(self, *weights: int) -> None:
        shares = dict(zip(ENGINES, weights, strict=True))
        route = http_route(self._namespace, "own", parent_ref=self._gateway.parent_ref, weights=shares)
        self._api.apply(route)

    def set_weights_and_revision(self, revision: int, *weights: int) -> None:
        """As `set_weights`, with one more rule: PROBE_PATH is redirected to a host named by the revision."""
        shares = dict(zip(ENGINES, weights, strict=True))
        route = http_route(self._namespace, "own", parent_ref=self._gateway.parent_ref, weights=shares)
        redirect = {"hostname": revision_host(revision), "statusCode": 302}
        rule = {
            "matches": [{"path": {"type": "Exact", "value": PROBE_PATH}}],
            "filters": [{"type": "RequestRedirect", "requestRedirect": redirect}],
        }
        route["spec"]["rules"].append(rule)
        self._api.apply(route)

    def accepted(self) -> bool:
        return route_accepted(self._api.get(GATEWAY_API, "HTTPRoute", "own", self._namespace))

    def remove(self) -> None:
        self._api.delete(GATEWAY_API, "HTTPRoute", "own", self._namespace)


@pytest.fixture
def route(
    control_plane: ControlPlane, gateway: TraefikGateway, namespace: str, engines: list[EngineProcess]
) -> Iterator[Route]:
    """The route under 70/30/0, in force."""
    route = Route(control_plane, gateway, namespace, engines)
    route.set_weights(70, 30, 0)
    wait_until(route.accepted, 10, "the route to be accepted")
    wait_until(lambda: send(gateway, 5)[-1].succeeded, 10, "the data plane to follow")
    yield route
    route.remove()


def send(gateway: TraefikGateway, count: int) -> list[SentRequest]:
    """Send about `count` requests at 500 a second and return them in the order in which they were sent."""
    load = Load(gateway.url, requests_per_second=500)
    asyncio.run(load.run(seconds=(count - 0.5) / 500, ended=asyncio.Event()))
    return sorted(load.finished, key=lambda request: request.sent_at)


def test_requests_are_shared_out_by_weight(gateway: TraefikGateway, route: Route) -> None:
    requests = send(gateway, 500)
    assert len(requests) > 450
    assert all(request.succeeded for request in requests)
    share = Counter(request.engine for request in requests)
    assert share["decode-2"] == 0
    assert share["decode-0"] / len(requests) == pytest.approx(0.7, abs=0.02)
    assert share["decode-1"] / len(requests) == pytest.approx(0.3, abs=0.02)


async def answered(load: Load, count: int) -> None:
    async def enough() -> bool:
        return len(load.finished) >= count

    await wait_until_async(enough, 20, f"{count} answers")


async def test_a_weight_of_zero_takes_effect_at_once_and_costs_no_request(
    gateway: TraefikGateway, route: Route
) -> None:
    load = Load(gateway.url, requests_per_second=100)
    ended = asyncio.Event()
    sending = asyncio.create_task(load.run(seconds=30, ended=ended))
    await answered(load, 50)
    changed_at = time.monotonic()
    await asyncio.to_thread(route.set_weights, 0, 30, 0)
    await answered(load, len(load.finished) + 150)
    ended.set()
    await sending

    assert all(request.succeeded for request in load.finished)
    to_first = [request.sent_at for request in load.finished if request.engine == "decode-0"]
    assert min(to_first) < changed_at
    assert max(to_first) - changed_at < 0.5
    later = [request for request in load.finished if request.sent_at > changed_at + 0.5]
    assert len(later) > 50
    assert {request.engine for request in later} == {"decode-1"}


async def test_a_redirect_in_the_same_route_proves_which_weights_the_data_plane_follows(
    gateway: TraefikGateway, route: Route
) -> None:
    load = Load(gateway.url, requests_per_second=100)
    ended = asyncio.Event()
    sending = asyncio.create_task(load.run(seconds=60, ended=ended))
    proven: list[tuple[float, float, str]] = []
    async with aiohttp.ClientSession() as session:
        for revision in range(8):
            chosen = revision % 2
            await asyncio.to_thread(
                route.set_weights_and_revision, revision, *((0, 100, 0) if chosen else (100, 0, 0))
            )
            await wait_until_async(partial(follows, session, gateway, revision), 5, f"revision {revision}")
            proven_at = time.monotonic()
            await answered(load, len(load.finished) + 20)
            proven.append((proven_at, time.monotonic(), ENGINES[chosen]))
    ended.set()
    await sending

    for start, end, engine in proven:
        sent_then = [request for request in load.finished if start <= request.sent_at <= end]
        assert len(sent_then) >= 10
        assert {(request.engine, request.status) for request in sent_then} == {(engine, 200)}


async def follows(session: aiohttp.ClientSession, gateway: TraefikGateway, revision: int) -> bool:
    async with session.get(gateway.url + PROBE_PATH, allow_redirects=False) as answer:
        return urlsplit(answer.headers.get("Location", "")).hostname == revision_host(revision)


def revision_host(revision: int) -> str:
    return f"revision-{revision}.example.invalid"


def test_an_engine_that_died_is_a_gateway_error_without_an_engines_name(
    gateway: TraefikGateway, route: Route, engines: list[EngineProcess]
) -> None:
    engines[0].process.kill()
    requests = send(gateway, 200)
    failed = [request for request in requests if not request.succeeded]
    assert len(failed) / len(requests) == pytest.approx(0.7, abs=0.05)
    assert {(request.status, request.engine) for request in failed} == {(502, "")}


def test_the_configuration_with_the_token_is_for_its_owner_alone(
    gateway: TraefikGateway, tmp_path: Path
) -> None:
    (configuration,) = [word.partition("=")[2] for word in gateway.process.argv if "configFile" in word]
    assert Path(configuration).stat().st_mode & 0o077 == 0
    assert not any("token" in word for word in gateway.process.argv)
