"""Requests to the Kubernetes API: raw JSON in and out, a deadline on every call, errors as types.

The official client gives configuration, credentials, TLS and the connection pool; none of its generated
models is used, because parsing with them costs eight times what raw JSON does. This is the only module
that imports it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, cast

import aiohttp
import orjson
from kubernetes.aio import config as client_config
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject

from kvpool.cluster.errors import ApiError, Retryable, Unauthorized, from_answer
from kvpool.cluster.resources import Obj, Target

DEFAULT_TIMEOUT_SECONDS = 10.0
_CONNECT_TIMEOUT_SECONDS = 5.0
_CREDENTIAL_AGE_SECONDS = 60.0
"""Projected tokens are renewed on disk well before they end; reading them this often is always in time."""
_LINE_LIMIT_BYTES = 16 * 2**20
"""A watch event is one line; the API server refuses objects above 1.5 MiB, so this is far beyond any."""

_JSON = "application/json"


class Verb(Enum):
    """What a request does: name in metrics, HTTP method, content type of its body."""

    GET = ("get", "GET", _JSON)
    LIST = ("list", "GET", _JSON)
    WATCH = ("watch", "GET", _JSON)
    CREATE = ("create", "POST", _JSON)
    UPDATE = ("update", "PUT", _JSON)
    APPLY = ("apply", "PATCH", "application/apply-patch+yaml")
    JSON_PATCH = ("patch", "PATCH", "application/json-patch+json")
    MERGE_PATCH = ("patch", "PATCH", "application/merge-patch+json")
    DELETE = ("delete", "DELETE", _JSON)

    def __init__(self, label: str, method: str, content_type: str) -> None:
        self.label = label
        self.method = method
        self.content_type = content_type

    @property
    def reads(self) -> bool:
        """Whether the request changes nothing, so that repeating it is harmless."""
        return self.method == "GET"


@dataclass(frozen=True, slots=True)
class Access:
    """Where the cluster is and who we are: a kubeconfig file, or None for the pod's own ServiceAccount."""

    kubeconfig: Path | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One finished request, for metrics. `code` is the HTTP status, 0 when there was no answer.

    For a watch, `seconds` is the time to the answer's head, not the length of the stream.
    """

    verb: str
    resource: str
    code: int
    seconds: float


RequestHook = Callable[[RequestRecord], None]


class _LoadedKubeconfig(Protocol):
    """The part of the client's kubeconfig loader that refreshes a configuration (its code is untyped)."""

    async def load_and_set(self, client_configuration: Configuration) -> None: ...


class _Transport(RESTClientObject):
    """The official client's transport, opened for raw use: its generated layer would parse and re-encode."""

    def session(self) -> aiohttp.ClientSession:
        """A pool with the configuration's TLS and proxy settings."""
        return self._create_pool_manager()


class _Credentials:
    """The configuration and its bearer token, re-read by age and on demand."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._loader: _LoadedKubeconfig | None = None
        self._read_at = 0.0
        self._lock = asyncio.Lock()
        self.configuration = Configuration()

    async def load(self) -> None:
        """Read everything from the source. Raises OSError or the client's ConfigException."""
        if self._access.kubeconfig is None:
            client_config.load_incluster_config(self.configuration)  # type: ignore[no-untyped-call]  # client is untyped here
        else:
            loader = await client_config.load_kube_config(  # type: ignore[no-untyped-call]  # client is untyped here
                config_file=str(self._access.kubeconfig),
                context=self._access.context,
                client_configuration=self.configuration,
                persist_config=False,
            )
            self._loader = cast("_LoadedKubeconfig", loader)
        self._read_at = time.monotonic()

    async def authorization(self) -> str | None:
        """The Authorization header's value, or None where a client certificate or nothing identifies us."""
        async with self._lock:
            if self._loader is not None and time.monotonic() - self._read_at > _CREDENTIAL_AGE_SECONDS:
                # Reads a token file again; runs an exec plugin only when its token is about to end.
                await self._loader.load_and_set(self.configuration)
                self._read_at = time.monotonic()
            value = await self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return value.strip() if value else None

    async def reload(self, refused: str | None) -> None:
        """Read the source again, unless another request has replaced the refused value meanwhile."""
        async with self._lock:
            value = await self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
            if refused is None or value is None or value.strip() == refused:
                await self.load()


class Rest:
    """A connection to one API server. Make it with `connect`, inside the event loop that uses it."""

    def __init__(self, credentials: _Credentials, hook: RequestHook | None) -> None:
        self._credentials = credentials
        self._hook = hook
        configuration = credentials.configuration
        self._host = configuration.host.rstrip("/")
        self._server_name = configuration.tls_server_name
        self._proxy = configuration.proxy
        self._session = _Transport(configuration).session()

    @classmethod
    async def connect(cls, access: Access, *, hook: RequestHook | None = None) -> Rest:
        """Read configuration and credentials; sends nothing yet.

        `hook` is called after every request, in the event loop; it must neither block nor raise.
        Raises OSError or the client's ConfigException where the source cannot be read.
        """
        credentials = _Credentials(access)
        await credentials.load()
        return cls(credentials, hook)

    async def close(self) -> None:
        """Close all connections; open streams end with Retryable."""
        await self._session.close()

    async def request(
        self,
        verb: Verb,
        target: Target,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> Obj:
        """Send one request and return the parsed answer, within `timeout_seconds` in all.

        `body` is anything orjson encodes. A 401 makes the credentials be read again and the request be
        sent once more. Raises ApiError.
        """
        payload = None if body is None else orjson.dumps(body)
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=_CONNECT_TIMEOUT_SECONDS)
        async with self._answer(verb, target, query or {}, payload, timeout) as (name, response):
            try:
                content = await response.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                raise _no_answer(name, error, verb) from error
            return _parsed(name, verb, response.status, content)

    async def ping(self, *, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """Return when the API server answers a request of ours; raises ApiError when it does not."""
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=_CONNECT_TIMEOUT_SECONDS)
        async with self._answered("GET /version", Verb.GET, "/version", {}, None, timeout):
            return

    @asynccontextmanager
    async def lines(
        self, target: Target, query: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncGenerator[AsyncGenerator[list[bytes], None], None]:
        """Open a watch; yields its lines in batches as they arrive, ends when the server ends the stream.

        Raises ApiError: Retryable when no byte came for `idle_seconds` or the connection broke.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT_TIMEOUT_SECONDS, sock_read=idle_seconds
        )
        async with self._answer(Verb.WATCH, target, query, None, timeout) as (name, response):
            batches = _batches(name, response.content)
            try:
                yield batches
            finally:
                await batches.aclose()

    @asynccontextmanager
    async def _answer(
        self,
        verb: Verb,
        target: Target,
        query: Mapping[str, str],
        payload: bytes | None,
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncGenerator[tuple[str, aiohttp.ClientResponse], None]:
        name = f"{verb.label} {target}"
        resource = str(target.resource) if target.sub is None else f"{target.resource}/{target.sub}"
        path = target.path
        async with self._answered(name, verb, path, query, payload, timeout, resource) as response:
            yield name, response

    @asynccontextmanager
    async def _answered(  # noqa: PLR0913 - the parts of a request
        self,
        name: str,
        verb: Verb,
        path: str,
        query: Mapping[str, str],
        payload: bytes | None,
        timeout: aiohttp.ClientTimeout,
        resource: str = "version",
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """A successful response; 401 is tried a second time with fresh credentials."""
        for attempt in (1, 2):
            authorization = await self._authorization(name)
            started = time.monotonic()
            code = 0
            try:
                response = await self._send(verb, path, query, payload, timeout, authorization)
                code = response.status
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise _no_answer(name, error, verb) from error
            finally:
                self._record(RequestRecord(verb.label, resource, code, time.monotonic() - started))
            async with response:
                if 200 <= code < 300:
                    yield response
                    return
                error_answer = await _error(name, verb, response)
            if not isinstance(error_answer, Unauthorized) or attempt == 2:
                raise error_answer
            await self._reload(name, authorization)

    async def _send(
        self,
        verb: Verb,
        path: str,
        query: Mapping[str, str],
        payload: bytes | None,
        timeout: aiohttp.ClientTimeout,
        authorization: str | None,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": _JSON, "User-Agent": "kvpool"}
        if payload is not None:
            headers["Content-Type"] = verb.content_type
        if authorization is not None:
            headers["Authorization"] = authorization
        return await self._session.request(
            verb.method,
            self._host + path,
            params=query,
            data=payload,
            headers=headers,
            timeout=timeout,
            allow_redirects=False,
            proxy=self._proxy,
            server_hostname=self._server_name,
        )

    async def _authorization(self, name: str) -> str | None:
        try:
            return await self._credentials.authorization()
        except (OSError, client_config.ConfigException) as error:
            raise _no_credentials(name, error) from error

    async def _reload(self, name: str, refused: str | None) -> None:
        try:
            await self._credentials.reload(refused)
        except (OSError, client_config.ConfigException) as error:
            raise _no_credentials(name, error) from error

    def _record(self, record: RequestRecord) -> None:
        if self._hook is not None:
            self._hook(record)


def _no_credentials(name: str, error: Exception) -> Retryable:
    return Retryable(name, 0, "", f"credentials cannot be read: {error}", outcome_unknown=False)


def _no_answer(name: str, error: Exception, verb: Verb) -> Retryable:
    never_sent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    text = str(error) or type(error).__name__
    return Retryable(name, 0, "", text, outcome_unknown=not (verb.reads or never_sent))


async def _error(name: str, verb: Verb, response: aiohttp.ClientResponse) -> ApiError:
    try:
        content = await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        return _no_answer(name, error, verb)
    return from_answer(name, response.status, content, retry_after=response.headers.get("Retry-After"))


def _parsed(name: str, verb: Verb, status: int, content: bytes) -> Obj:
    try:
        parsed: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise Retryable(
            name, status, "", f"the answer is not JSON: {error}", outcome_unknown=not verb.reads
        ) from error
    if not isinstance(parsed, dict):
        raise Retryable(name, status, "", "the answer is not a JSON object", outcome_unknown=not verb.reads)
    return parsed


async def _batches(name: str, content: aiohttp.StreamReader) -> AsyncGenerator[list[bytes], None]:
    """Complete lines of a stream, as many at a time as have arrived."""
    rest = b""
    try:
        async for chunk in content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LINE_LIMIT_BYTES:
                raise Retryable(name, 0, "", f"a watch line exceeds {_LINE_LIMIT_BYTES} bytes")
            if lines:
                yield lines
    except (aiohttp.ClientError, TimeoutError) as error:
        raise _no_answer(name, error, Verb.WATCH) from error
