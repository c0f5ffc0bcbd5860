"""The route writer against the real API server; a scripted data plane says which revision it serves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest

from kvpool.adapters.routers.base import Reading, Revision
from kvpool.adapters.routers.httproute import HTTPRouteOutput
from kvpool.api import PDGroup
from kvpool.cluster.reads import find
from kvpool.cluster.resources import HTTP_ROUTES
from kvpool.cluster.rest import Rest, Verb
from kvpool.control import route_writer
from kvpool.control.route_writer import RouteWriter
from kvpool.model.decisions import SlotWeight
from tests.control.groups import HTTP_ROUTE, a_group, a_weight, decode, key_of
from tests.harness.faultproxy import Answer, FaultProxy
from tests.harness.waiting import wait_until_async


class NoReader:
    """Nothing is read from a gateway here."""

    async def route(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        raise NotImplementedError

    async def redirect_host(self, gateway_namespace: str, gateway: str, host: str, path: str) -> str | None:
        raise NotImplementedError


class ObedientRoute(HTTPRouteOutput):
    """The HTTPRoute output in front of a data plane that is always up to date."""

    def __init__(self) -> None:
        super().__init__(NoReader())

    async def read_back(self, revision: Revision) -> Reading | None:
        return Reading(in_force=True, detail="")


@pytest.fixture
async def make_writer(rest: Rest) -> AsyncIterator[Callable[[], RouteWriter]]:
    """Makes writers as successive leaders do; all are closed in the end."""
    writers: list[RouteWriter] = []

    def make() -> RouteWriter:
        first = (len(writers) + 1) << 20
        writer = RouteWriter(rest, {"HTTPRoute": ObedientRoute()}, first_revision=first, on_ack=lambda: None)
        writers.append(writer)
        return writer

    yield make
    for writer in writers:
        await writer.close()


@pytest.fixture
def writer(make_writer: Callable[[], RouteWriter]) -> RouteWriter:
    return make_writer()


def ask(writer: RouteWriter, group: PDGroup, *members: SlotWeight) -> None:
    """One planning step that wants these weights."""
    weights = decode(group, *members)
    writer.keep_only({key_of(group): group}, weights)
    writer.publish({key_of(group): group}, weights, {})


def leave(writer: RouteWriter, group: PDGroup) -> None:
    """One planning step in which the group does not act."""
    writer.keep_only({key_of(group): group}, [])
    writer.publish({key_of(group): group}, [], {})


def acked(writer: RouteWriter, weights: dict[str, int]) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return [ack.weights for ack in writer.acks()] == [weights]

    return look


async def live(rest: Rest, namespace: str) -> dict[str, int] | None:
    """Weights by Service of the live route; None without one."""
    route = await find(rest, HTTP_ROUTES.at(namespace, "chat-edge"))
    if route is None:
        return None
    return {
        backend["name"]: backend["weight"] for backend in route["spec"]["rules"][0].get("backendRefs", [])
    }


async def until_live(rest: Rest, namespace: str, weights: dict[str, int], seconds: float = 5.0) -> None:
    async def look() -> bool:
        return await live(rest, namespace) == weights

    await wait_until_async(look, seconds, f"the route to carry {weights}")


async def test_a_group_that_goes_back_to_observe_is_written_to_no_more(
    rest: Rest,
    namespace: str,
    writer: RouteWriter,
    proxy: FaultProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(route_writer, "_REAPPLY_SECONDS", 0.1)
    group = a_group(namespace, HTTP_ROUTE)
    ask(writer, group, a_weight(namespace, "d-0", 100))
    await wait_until_async(acked(writer, {"d-0": 100}), 5, "the first weights")
    path = f"{namespace}/httproutes"

    async def reapplied() -> bool:
        return len(proxy.seen("PATCH", path)) >= 3

    await wait_until_async(reapplied, 5, "the route to be applied again while the group acts")
    leave(writer, group)
    await asyncio.sleep(0)
    await rest.request(Verb.DELETE, HTTP_ROUTES.at(namespace, "chat-edge"))
    written = len(proxy.seen("PATCH", path))
    with contextlib.suppress(AssertionError):
        await wait_until_async(
            lambda: asyncio.sleep(0, len(proxy.seen("PATCH", path)) > written), 0.5, "a write"
        )
    assert len(proxy.seen("PATCH", path)) == written
    assert await live(rest, namespace) is None
    assert [ack.weights for ack in writer.acks()] == [{"d-0": 100}], "what it carried is still known"

    ask(writer, group, a_weight(namespace, "d-0", 100))
    await until_live(rest, namespace, {"d-0-edge": 100})


async def test_an_edited_on_delete_is_written_there_and_back_though_no_weight_changes(
    rest: Rest, namespace: str, writer: RouteWriter
) -> None:
    frozen, member = a_group(namespace, HTTP_ROUTE), a_weight(namespace, "d-0", 100)
    routing = frozen.spec.routing.model_copy(update={"on_delete": "Remove"})
    owned = frozen.model_copy(update={"spec": frozen.spec.model_copy(update={"routing": routing})})

    async def owners() -> list[str]:
        route = await find(rest, HTTP_ROUTES.at(namespace, "chat-edge"))
        assert route is not None
        return [owner["uid"] for owner in route["metadata"].get("ownerReferences", [])]

    ask(writer, frozen, member)
    await until_live(rest, namespace, {"d-0-edge": 100})
    for group, uids in ((owned, ["uid-chat"]), (frozen, [])):
        ask(writer, group, member)

        async def follows(uids: list[str] = uids) -> bool:
            return await owners() == uids

        await wait_until_async(follows, 5, f"the route to be owned by {uids}")


async def test_the_first_route_waits_for_a_member(rest: Rest, namespace: str, writer: RouteWriter) -> None:
    group = a_group(namespace, HTTP_ROUTE)
    ask(writer, group, a_weight(namespace, "d-0", 0))
    await wait_until_async(acked(writer, {"d-0": 0}), 5, "zeros that need no route")
    assert await live(rest, namespace) is None
    ask(writer, group, a_weight(namespace, "d-0", 100))
    await until_live(rest, namespace, {"d-0-edge": 100})


async def test_a_new_leader_writes_zeros_over_the_route_of_the_one_before(
    rest: Rest, namespace: str, make_writer: Callable[[], RouteWriter]
) -> None:
    group = a_group(namespace, HTTP_ROUTE)
    before = make_writer()
    ask(before, group, a_weight(namespace, "d-0", 100))
    await wait_until_async(acked(before, {"d-0": 100}), 5, "the weights of the first leader")
    await before.close()

    after = make_writer()
    ask(after, group)
    await wait_until_async(acked(after, {}), 5, "the zeros of the next leader")
    assert await live(rest, namespace) == {}


async def test_new_backends_get_weight_zero_first_and_zeros_never_wait(
    rest: Rest, namespace: str, writer: RouteWriter
) -> None:
    group = a_group(namespace, HTTP_ROUTE)
    ask(writer, group, a_weight(namespace, "d-0", 100))
    await wait_until_async(acked(writer, {"d-0": 100}), 5, "the first member")
    ask(writer, group, a_weight(namespace, "d-0", 0), a_weight(namespace, "d-1", 100))
    await until_live(rest, namespace, {"d-0-edge": 0, "d-1-edge": 0}, 0.9)
    await until_live(rest, namespace, {"d-0-edge": 0, "d-1-edge": 100})


async def test_the_newest_revision_wins_over_one_that_could_not_be_written(
    rest: Rest, namespace: str, writer: RouteWriter, proxy: FaultProxy
) -> None:
    group = a_group(namespace, HTTP_ROUTE)
    ask(writer, group, a_weight(namespace, "d-0", 100))
    await wait_until_async(acked(writer, {"d-0": 100}), 5, "the first weights")
    proxy.inject(Answer(503), times=100, method="PATCH", path=f"{namespace}/httproutes")
    ask(writer, group, a_weight(namespace, "d-0", 50))

    async def failed() -> bool:
        return bool(writer.errors())

    await wait_until_async(failed, 5, "the write to fail")
    proxy.heal()
    ask(writer, group, a_weight(namespace, "d-0", 0))
    await wait_until_async(acked(writer, {"d-0": 0}), 5, "the newest weights")
    assert await live(rest, namespace) == {"d-0-edge": 0}
    assert not writer.errors()
