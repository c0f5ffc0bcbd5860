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
_CREDENTIAL_TIMEOUT_SECONDS = 10.0
"""A kubeconfig may name a program that fetches a token; it must not hold requests for ever."""
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


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The API server and our credentials as they are now, for a library that brings its own transport."""

    server: str
    ca_path: str | None
    certificate_path: str | None
    key_path: str | None
    token: str | None


@dataclass(frozen=True, slots=True)
class _Call:
    """A request ready to be sent: its name in errors, its resource in metrics, and its parts."""

    name: str
    resource: str
    verb: Verb
    path: str
    query: Mapping[str, str]
    payload: bytes | None

    @classmethod
    def to(cls, verb: Verb, target: Target, query: Mapping[str, str], payload: bytes | None) -> _Call:
        resource = str(target.resource) if target.sub is None else f"{target.resource}/{target.sub}"
        return cls(f"{verb.label} {target}", resource, verb, target.path, query, payload)


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

    async def endpoint(self) -> Endpoint:
        """Where the server is and who we are, with a token that was read just now.

        Raises Retryable when the credentials cannot be read.
        """
        call = _Call("login", "login", Verb.GET, "", {}, None)
        await self._reload(call, None)
        authorization = await self._authorization(call)
        configuration = self._credentials.configuration
        return Endpoint(
            server=self._host,
            ca_path=configuration.ssl_ca_cert,
            certificate_path=configuration.cert_file,
            key_path=configuration.key_file,
            token=_bearer_token(authorization),
        )

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
        sent once more; the transport repeats a GET, PUT or DELETE once when a connection it had kept open
        turns out closed, so that a guarded write may meet itself and give Conflict. Raises ApiError.
        """
        payload = None if body is None else orjson.dumps(body)
        call = _Call.to(verb, target, query or {}, payload)
        status, content = await self._content(call, timeout_seconds)
        return _parsed(call, status, content)

    @asynccontextmanager
    async def lines(
        self, target: Target, query: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncGenerator[AsyncGenerator[list[bytes], None], None]:
        """Open a watch; yields its lines in batches as they arrive, ends when the server ends the stream.

        Raises ApiError: Retryable when no byte came for `idle_seconds` or the connection broke.
        """
        call = _Call.to(Verb.WATCH, target, query, None)
        async with self._answered(call, idle_seconds=idle_seconds) as response:
            batches = _batches(call, response.content)
            try:
                yield batches
            finally:
                await batches.aclose()

    async def _content(self, call: _Call, timeout_seconds: float) -> tuple[int, bytes]:
        try:
            async with asyncio.timeout(timeout_seconds), self._answered(call) as response:
                return response.status, await response.read()
        except TimeoutError as error:
            text = f"no answer within {timeout_seconds:g} s"
            raise Retryable(call.name, 0, "", text, outcome_unknown=not call.verb.reads) from error
        except aiohttp.ClientError as error:
            raise _no_answer(call, error) from error

    @asynccontextmanager
    async def _answered(
        self, call: _Call, *, idle_seconds: float | None = None
    ) -> AsyncGenerator[aiohttp.ClientResponse, None]:
        """A successful response; 401 is tried a second time with fresh credentials."""
        for attempt in (1, 2):
            authorization = await self._authorization(call)
            async with await self._send(call, authorization, idle_seconds) as response:
                if 200 <= response.status < 300:
                    yield response
                    return
                error = await _error(call, response)
            if not isinstance(error, Unauthorized) or attempt == 2:
                raise error
            await self._reload(call, authorization)

    async def _send(
        self, call: _Call, authorization: str | None, idle_seconds: float | None
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": _JSON, "User-Agent": "kvpool"}
        if call.payload is not None:
            headers["Content-Type"] = call.verb.content_type
        if authorization is not None:
            headers["Authorization"] = authorization
        started, code = time.monotonic(), 0
        try:
            response = await self._session.request(
                call.verb.method,
                self._host + call.path,
                params=call.query,
                data=call.payload,
                headers=headers,
                timeout=aiohttp.ClientTimeout(sock_connect=_CONNECT_TIMEOUT_SECONDS, sock_read=idle_seconds),
                allow_redirects=False,
                proxy=self._proxy,
                server_hostname=self._server_name,
            )
            code = response.status
        except (aiohttp.ClientError, OSError) as error:
            raise _no_answer(call, error) from error
        finally:
            if self._hook is not None:
                seconds = time.monotonic() - started
                self._hook(RequestRecord(call.verb.label, call.resource, code, seconds))
        return response

    async def _authorization(self, call: _Call) -> str | None:
        try:
            async with asyncio.timeout(_CREDENTIAL_TIMEOUT_SECONDS):
                return await self._credentials.authorization()
        except (OSError, client_config.ConfigException) as error:
            raise _no_credentials(call, error) from error

    async def _reload(self, call: _Call, refused: str | None) -> None:
        try:
            async with asyncio.timeout(_CREDENTIAL_TIMEOUT_SECONDS):
                await self._credentials.reload(refused)
        except (OSError, client_config.ConfigException) as error:
            raise _no_credentials(call, error) from error


def _bearer_token(authorization: str | None) -> str | None:
    """The token of a bearer header (the client spells the scheme in either case), None for other schemes."""
    scheme, _, token = (authorization or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _no_credentials(call: _Call, error: Exception) -> Retryable:
    text = f"credentials cannot be read: {error or type(error).__name__}"
    return Retryable(call.name, 0, "", text, outcome_unknown=False)


def _no_answer(call: _Call, error: Exception) -> Retryable:
    never_sent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    text = str(error) or type(error).__name__
    return Retryable(call.name, 0, "", text, outcome_unknown=not (call.verb.reads or never_sent))


async def _error(call: _Call, response: aiohttp.ClientResponse) -> ApiError:
    try:
        content = await response.read()
    except aiohttp.ClientError as error:
        return _no_answer(call, error)
    return from_answer(call.name, response.status, content, retry_after=response.headers.get("Retry-After"))


def _parsed(call: _Call, status: int, content: bytes) -> Obj:
    unknown = not call.verb.reads
    try:
        parsed: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        text = f"the answer is not JSON: {error}"
        raise Retryable(call.name, status, "", text, outcome_unknown=unknown) from error
    if not isinstance(parsed, dict):
        text = f"the answer is not a JSON object but {type(parsed).__name__}"
        raise Retryable(call.name, status, "", text, outcome_unknown=unknown)
    return parsed


async def _batches(call: _Call, content: aiohttp.StreamReader) -> AsyncGenerator[list[bytes], None]:
    """Complete lines of a stream, as many at a time as have arrived."""
    rest = b""
    try:
        async for chunk in content.iter_any():
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LINE_LIMIT_BYTES:
                raise Retryable(call.name, 0, "", f"a watch line exceeds {_LINE_LIMIT_BYTES} bytes")
            if lines:
                yield lines
    except (aiohttp.ClientError, OSError) as error:
        raise _no_answer(call, error) from error
