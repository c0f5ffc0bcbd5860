"""Asks every pool's store how it is, at a fixed pace; a store that does not answer is unknown, not empty."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import aiohttp

from kvpool.adapters.stores.mooncake import MooncakeMaster, StoreUnavailableError
from kvpool.api.kvpool import KVPool, MooncakeStore
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import StoreView

POLL_SECONDS: Final = 1.0
_AT_ONCE: Final = 16

Resolve = Callable[[str, str], tuple[str, ...]]
"""(namespace, Service name) to the addresses of its ready endpoints."""


class StorePoller:
    """Keeps the newest :class:`StoreView` of every pool that has a store."""

    def __init__(
        self, session: aiohttp.ClientSession, resolve: Resolve, on_change: Callable[[], None]
    ) -> None:
        self._session = session
        self._resolve = resolve
        self._on_change = on_change
        self._views: dict[ObjectKey, StoreView] = {}
        self._stores: dict[ObjectKey, MooncakeStore] = {}
        self._gate = asyncio.Semaphore(_AT_ONCE)

    def views(self) -> Mapping[ObjectKey, StoreView]:
        """A copy of what is known."""
        return dict(self._views)

    async def poll(self, pools: Iterable[KVPool], masters: Mapping[ObjectKey, frozenset[str]]) -> None:
        """Ask every store once; call `on_change` for each answer that differs from the one before.

        `masters` are those (address:port) that units of each pool are mounted at.
        """
        wanted = {ObjectKey(pool.metadata.namespace, pool.metadata.name): pool for pool in pools}
        stores = {
            key: store for key, pool in wanted.items() if (store := pool.spec.store.mooncake) is not None
        }
        for key in [key for key, known in self._stores.items() if stores.get(key) != known]:
            # Another store is no later state of the one before.
            self._views.pop(key, None)
        self._stores = stores
        await asyncio.gather(
            *(self._look(key, store, masters.get(key, frozenset())) for key, store in stores.items())
        )

    async def _look(self, key: ObjectKey, store: MooncakeStore, masters: frozenset[str]) -> None:
        """Note the answer as soon as it is there: one store that hangs keeps no other from being known."""
        view = await self._ask(key, store, masters)
        before = self._views.get(key)
        self._views[key] = view
        if before is None or _content(before) != _content(view):
            self._on_change()

    async def _ask(self, key: ObjectKey, store: MooncakeStore, masters: frozenset[str]) -> StoreView:
        now = time.monotonic()
        before = self._views.get(key)
        host = store.master.address
        if host is None and store.master.service_ref is not None:
            ready = self._resolve(key.namespace, store.master.service_ref.name)
            host = chosen(ready, before.rpc_address if before is not None else "", masters)
        if host is None:
            name = store.master.service_ref.name if store.master.service_ref else ""
            return _unreachable(key, before, now, f"Service {key.namespace}/{name} has no ready endpoint")
        admin, rpc = f"{host}:{store.master.admin_port}", f"{host}:{store.master.rpc_port}"
        try:
            async with self._gate:
                reading = await MooncakeMaster(self._session, admin).read()
        except StoreUnavailableError as error:
            view = _unreachable(key, before, now, str(error))
            return replace(view, rpc_address=rpc, admin_address=admin)
        return StoreView(
            pool=key,
            reachable=True,
            asked_at=now,
            rpc_address=rpc,
            admin_address=admin,
            segments=reading.segments,
            key_count=reading.key_count,
            keys_lost_at=_keys_lost_at(before, reading.key_count, now),
        )


def chosen(ready: tuple[str, ...], asked: str, masters: frozenset[str]) -> str | None:
    """Choose one of several ready endpoints, and stay with it: every change makes the pool's units anew.

    `asked` (address:port, empty for none) was asked last; `masters` are those that units are mounted at.
    Returns None when none is ready.
    """
    for known in (asked, *sorted(masters)):
        host = known.rpartition(":")[0]
        if host in ready:
            return host
    return ready[0] if ready else None


def _unreachable(key: ObjectKey, before: StoreView | None, now: float, message: str) -> StoreView:
    """The last answer, marked as such: its figures keep their old time."""
    if before is None:
        return StoreView(pool=key, reachable=False, asked_at=now, message=message)
    return replace(before, reachable=False, message=message)


def _keys_lost_at(before: StoreView | None, key_count: int | None, now: float) -> float | None:
    """When the store was last seen to lose all its objects at once."""
    if before is None:
        return None
    if key_count == 0 and before.key_count:
        return now
    return before.keys_lost_at


def _content(view: StoreView) -> tuple[object, ...]:
    return (view.reachable, view.segments, view.key_count, view.keys_lost_at, view.rpc_address, view.message)
