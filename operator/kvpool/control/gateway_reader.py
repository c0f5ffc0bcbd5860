"""What the HTTPRoute output reads back: the route from the API, the revision from the data plane."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from kvpool.cluster.reads import find
from kvpool.cluster.resources import HTTP_ROUTES, Resource
from kvpool.cluster.rest import Rest

GATEWAYS: Final = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway", namespaced=True)
DEADLINE_SECONDS: Final = 1.0
ADDRESS_SECONDS: Final = 30.0
"""How long a Gateway's address is taken from memory: it is asked for with every reading back."""


class GatewayReader:
    """Reads routes, and asks data planes at the addresses that Gateways state."""

    def __init__(
        self, rest: Rest, session: aiohttp.ClientSession, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rest = rest
        self._session = session
        self._clock = clock
        self._addresses: dict[tuple[str, str], tuple[str, float]] = {}

    async def route(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return the HTTPRoute, or None."""
        return await find(self._rest, HTTP_ROUTES.at(namespace, name), timeout_seconds=DEADLINE_SECONDS)

    async def redirect_host(self, gateway_namespace: str, gateway: str, host: str, path: str) -> str | None:
        """Ask the data plane; the redirect's host, "" for another answer, None without an address."""
        address = await self._address(gateway_namespace, gateway)
        if address is None:
            return None
        headers = {"Host": host} if host else {}
        try:
            async with self._session.get(
                f"http://{address}{path}",
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=DEADLINE_SECONDS),
            ) as answer:
                location = answer.headers.get("Location", "")
        except (aiohttp.ClientError, TimeoutError, OSError):
            self._addresses.pop((gateway_namespace, gateway), None)
            return ""
        return urlsplit(location).hostname or ""

    async def _address(self, namespace: str, name: str) -> str | None:
        """Where the data plane listens, as its Gateway said not long ago; asked again when nobody answers."""
        known = self._addresses.get((namespace, name))
        if known is not None and self._clock() - known[1] < ADDRESS_SECONDS:
            return known[0]
        found = await find(self._rest, GATEWAYS.at(namespace, name), timeout_seconds=DEADLINE_SECONDS)
        address = data_plane_address(found or {})
        self._addresses.pop((namespace, name), None)
        if address is not None:
            self._addresses[namespace, name] = (address, self._clock())
        return address


def data_plane_address(gateway: Mapping[str, Any]) -> str | None:
    """host:port of a Gateway's first HTTP listener, or None while its status states no address."""
    addresses = gateway.get("status", {}).get("addresses") or []
    listeners = [
        listener
        for listener in gateway.get("spec", {}).get("listeners", [])
        if listener.get("protocol") == "HTTP"
    ]
    if not addresses or not listeners:
        return None
    return f"{addresses[0]['value']}:{listeners[0]['port']}"
