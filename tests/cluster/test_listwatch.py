"""List and watch against the real API server, with broken connections in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from devcluster.controlplane import ControlPlane
from kvpool.cluster.errors import Expired, Gone, Retryable, Throttled
from kvpool.cluster.listwatch import ListWatch, Sink, Timing, list_into, watch_event
from kvpool.cluster.reads import Selection
from kvpool.cluster.resources import CONFIG_MAPS, Obj
from kvpool.cluster.rest import Access, Rest
from kvpool.cluster.store import EventType, FactStore, Key, Registration
from tests.harness.faultproxy import Answer, Break, FaultProxy
from tests.harness.waiting import wait_until_async

SECONDS = 10.0
WATCH = "/configmaps"


def a_of(obj: Obj) -> str:
    return str(obj["data"]["a"])


class Mirror:
    """A store of config maps fed by one ListWatch."""

    def __init__(
        self, rest: Rest, namespace: str, backoff: Callable[[int], float], timing: Timing, labels: str = ""
    ) -> None:
        self.store = FactStore()
        self.maps: Registration[str] = self.store.register(CONFIG_MAPS, a_of)
        self.told: list[Key] = []
        self.store.subscribe(self.told.append)
        self.watch = ListWatch(
            rest,
            CONFIG_MAPS,
            self.store,
            backoff=backoff,
            selection=Selection(namespace, label_selector=labels),
            timing=timing,
        )

    @property
    def content(self) -> dict[str, str]:
        return {fact.key.name: fact.value for fact in self.store.facts(self.maps)}

    async def shows(self, content: dict[str, str]) -> None:
        async def same() -> bool:
            return self.content == content

        await wait_until_async(same, SECONDS, f"the store to show {content}, it shows {self.content}")

    async def comes(self, what: str, true: Callable[[], bool]) -> None:
        async def come() -> bool:
            return true()

        await wait_until_async(come, SECONDS, what)


@asynccontextmanager
async def running(mirror: Mirror) -> AsyncIterator[Mirror]:
    task = asyncio.create_task(mirror.watch.run())
    try:
        await asyncio.wait_for(mirror.watch.synced.wait(), SECONDS)
        yield mirror
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def put(plane: ControlPlane, namespace: str, name: str, a: str, **labels: str) -> None:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    plane.admin.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": a}})


def drop(plane: ControlPlane, namespace: str, name: str) -> None:
    assert plane.admin.delete("v1", "ConfigMap", name, namespace)


@pytest.fixture
def mirror(through_proxy: Rest, namespace: str, fixed_backoff: Callable[[int], float]) -> Mirror:
    return Mirror(through_proxy, namespace, fixed_backoff, Timing())


async def test_what_is_there_is_listed_before_synced_and_changes_follow(
    control_plane: ControlPlane, namespace: str, mirror: Mirror
) -> None:
    put(control_plane, namespace, "old", "1")
    async with running(mirror):
        assert mirror.content == {"old": "1"}
        put(control_plane, namespace, "new", "1")
        put(control_plane, namespace, "old", "2")
        await mirror.shows({"old": "2", "new": "1"})
        drop(control_plane, namespace, "old")
        await mirror.shows({"new": "1"})
        assert (mirror.watch.lists, mirror.watch.failures, mirror.watch.last_error) == (1, 0, None)


async def test_a_long_collection_is_listed_in_pages(
    control_plane: ControlPlane, namespace: str, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvpool.cluster.reads.PAGE_LIMIT", 2)
    for name in "abcde":
        put(control_plane, namespace, name, "1")
    async with running(mirror):
        assert sorted(mirror.content) == list("abcde")
        put(control_plane, namespace, "f", "1")
        await mirror.shows(dict.fromkeys("abcdef", "1"))


async def test_an_object_that_leaves_the_selection_is_gone_and_may_come_back(
    control_plane: ControlPlane, namespace: str, through_proxy: Rest, fixed_backoff: Callable[[int], float]
) -> None:
    put(control_plane, namespace, "one", "1", colour="red")
    async with running(Mirror(through_proxy, namespace, fixed_backoff, Timing(), "colour=red")) as mirror:
        put(control_plane, namespace, "one", "2", colour="blue")
        await mirror.shows({})
        put(control_plane, namespace, "one", "3", colour="red")
        await mirror.shows({"one": "3"})


async def test_a_cut_watch_goes_on_where_it_was_without_a_new_list(
    control_plane: ControlPlane, namespace: str, mirror: Mirror, proxy: FaultProxy
) -> None:
    put(control_plane, namespace, "one", "1")
    async with running(mirror):
        await mirror.comes("the watch to be open", lambda: len(proxy.seen("GET", WATCH)) == 2)
        proxy.inject(Break.CUT, times=3, path=WATCH)
        assert proxy.cut_open() == 1
        put(control_plane, namespace, "one", "2")
        drop(control_plane, namespace, "one")
        put(control_plane, namespace, "two", "1")
        await mirror.shows({"two": "1"})
        assert mirror.watch.lists == 1
        assert isinstance(mirror.watch.last_error, Retryable)
        assert mirror.watch.failures == 0, "all is well again"


async def test_a_watch_that_the_server_ends_is_opened_again_without_a_new_list(
    control_plane: ControlPlane, namespace: str, through_proxy: Rest, proxy: FaultProxy
) -> None:
    put(control_plane, namespace, "one", "1")
    mirror = Mirror(through_proxy, namespace, lambda _: 0.05, Timing(server_seconds=1))
    async with running(mirror):
        await mirror.comes("a third watch", lambda: len(proxy.seen("GET", WATCH)) >= 4)
        put(control_plane, namespace, "one", "2")
        await mirror.shows({"one": "2"})
        assert mirror.watch.lists == 1


async def test_a_stream_that_falls_silent_is_dropped_and_nothing_is_missed(
    control_plane: ControlPlane, namespace: str, through_proxy: Rest, proxy: FaultProxy
) -> None:
    put(control_plane, namespace, "one", "1")
    mirror = Mirror(through_proxy, namespace, lambda _: 0.05, Timing(idle_seconds=0.5, list_page_seconds=0.5))
    async with running(mirror):
        await mirror.comes("the watch to be open", lambda: len(proxy.seen("GET", WATCH)) >= 2)
        proxy.pause()
        put(control_plane, namespace, "one", "2")
        await mirror.comes("the silence to be noticed", lambda: mirror.watch.failures >= 2)
        assert mirror.content == {"one": "1"}
        proxy.resume()
        await mirror.shows({"one": "2"})


async def test_too_old_a_version_leads_to_a_new_list_at_once(
    control_plane: ControlPlane, namespace: str, through_proxy: Rest, proxy: FaultProxy
) -> None:
    put(control_plane, namespace, "one", "1")
    mirror = Mirror(through_proxy, namespace, lambda _: 3600.0, Timing(server_seconds=1))
    async with running(mirror):
        await mirror.comes("the watch to be open", lambda: len(proxy.seen("GET", WATCH)) >= 2)
        proxy.inject(Answer(410), path=WATCH)
        put(control_plane, namespace, "one", "2")  # lets the first watch end with a word
        await mirror.comes("the new list", lambda: mirror.watch.lists == 2)
        assert isinstance(mirror.watch.last_error, Expired)
        put(control_plane, namespace, "one", "3")
        await mirror.shows({"one": "3"})


async def test_objects_deleted_while_nobody_watched_are_dropped_by_the_next_list(
    fresh_control_plane: Callable[..., ControlPlane], tmp_path: Path, fixed_backoff: Callable[[int], float]
) -> None:
    plane = fresh_control_plane(crds=False)
    plane.create_namespace("a")
    put(plane, "a", "kept", "1")
    put(plane, "a", "lost", "1")
    with FaultProxy(plane.credentials) as proxy:
        rest = await Rest.connect(Access(proxy.kubeconfig(tmp_path / "proxy")))
        async with running(Mirror(rest, "a", fixed_backoff, Timing())) as mirror:
            proxy.inject(Break.CUT, times=10_000)
            plane.stop_apiserver()
            plane.start_apiserver()
            drop(plane, "a", "lost")
            put(plane, "a", "new", "1")
            assert mirror.content == {"kept": "1", "lost": "1"}

            mirror.told.clear()
            proxy.heal()
            await mirror.shows({"kept": "1", "new": "1"})
            assert {key.name for key in mirror.told} == {"lost", "new"}, "what did not change is not told"
            assert mirror.watch.lists == 2, "a restarted server has no history to replay"
        await rest.close()


async def test_a_list_into_the_store_seeds_it_and_heals_it_when_repeated(
    control_plane: ControlPlane, namespace: str, mirror: Mirror, through_proxy: Rest, proxy: FaultProxy
) -> None:
    selection = Selection(namespace)
    put(control_plane, namespace, "one", "1")
    await list_into(through_proxy, CONFIG_MAPS, mirror.store, selection=selection)
    assert mirror.content == {"one": "1"}

    drop(control_plane, namespace, "one")
    put(control_plane, namespace, "two", "1")
    proxy.inject(Answer(500), path=WATCH)
    with pytest.raises(Retryable):
        await list_into(through_proxy, CONFIG_MAPS, mirror.store, selection=selection)
    assert mirror.content == {"one": "1"}, "nothing is dropped on silence"
    await list_into(through_proxy, CONFIG_MAPS, mirror.store, selection=selection)
    assert mirror.content == {"two": "1"}


@pytest.mark.parametrize(("status", "kind"), [(404, Gone), (429, Throttled), (500, Retryable)])
async def test_a_list_that_is_refused_is_tried_again(
    control_plane: ControlPlane,
    namespace: str,
    mirror: Mirror,
    proxy: FaultProxy,
    status: int,
    kind: type[Exception],
) -> None:
    put(control_plane, namespace, "one", "1")
    proxy.inject(Answer(status), times=2, path=WATCH)
    async with running(mirror):
        assert mirror.content == {"one": "1"}
        assert isinstance(mirror.watch.last_error, kind)


async def test_the_servers_wish_to_wait_is_kept_to(
    namespace: str, through_proxy: Rest, proxy: FaultProxy
) -> None:
    proxy.inject(Answer(429, retry_after_seconds=1), path=WATCH)
    mirror = Mirror(through_proxy, namespace, lambda _: 0.0, Timing())
    started = asyncio.get_running_loop().time()
    async with running(mirror):
        assert asyncio.get_running_loop().time() - started >= 1.0


async def test_the_heartbeat_moves_only_when_the_server_speaks(
    control_plane: ControlPlane, namespace: str, mirror: Mirror
) -> None:
    made = mirror.watch.last_event_monotonic
    async with running(mirror):
        listed = mirror.watch.last_event_monotonic
        assert listed > made
        put(control_plane, namespace, "one", "1")
        await mirror.shows({"one": "1"})
        assert mirror.watch.last_event_monotonic > listed


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"<html>bad gateway</html>",
        b"[]",
        b"7",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": null}',
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "7"}}}',
        b'{"type": "ADDED", "object": {"metadata": {"name": "n", "uid": "u", "resourceVersion": ""}}}',
        b'{"type": "MOVED", "object": {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7"}}}',
        b'{"type": "ERROR", "object": "gone"}',
        b'{"type": "ERROR", "object": {"code": "many"}}',
    ],
)
def test_a_line_that_is_no_event_is_a_reason_to_watch_anew(line: bytes) -> None:
    with pytest.raises(Retryable):
        watch_event("watch pods", line)


def test_events_bookmarks_and_errors_are_told_apart() -> None:
    about = {"metadata": {"name": "n", "uid": "u", "resourceVersion": "7"}}
    marked = {"metadata": {"resourceVersion": "8"}}
    assert watch_event("x", orjson.dumps({"type": "ADDED", "object": about})) == (EventType.ADDED, about)
    assert watch_event("x", orjson.dumps({"type": "BOOKMARK", "object": marked})) == (None, marked)
    with pytest.raises(Expired):
        watch_event("x", b'{"type": "ERROR", "object": {"code": 410, "reason": "Expired"}}')


async def test_an_error_of_the_sink_ends_the_watch_loudly(
    control_plane: ControlPlane, namespace: str, through_proxy: Rest
) -> None:
    class Broken(Sink):
        def observe(self, resource: object, event: EventType, obj: Obj) -> None:
            raise LookupError("cannot project")

        def prune(self, *_: object) -> None: ...

    put(control_plane, namespace, "one", "1")
    selection = Selection(namespace)
    watch = ListWatch(through_proxy, CONFIG_MAPS, Broken(), backoff=lambda _: 0.0, selection=selection)
    with pytest.raises(LookupError, match="cannot project"):
        await asyncio.wait_for(watch.run(), SECONDS)
