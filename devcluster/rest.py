"""A small typed client of the Kubernetes API for fixtures: raw calls with status codes, apply, waiting.

It exists so that tests see exactly what the API server answers (code, reason, message); the operator
has its own client.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JsonObject = dict[str, Any]

REQUEST_SECONDS = 15.0
APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where an API server is and as whom to speak: a client certificate, a bearer token, or neither."""

    host: str
    port: int
    ca_file: Path
    certificate_file: Path | None = None
    key_file: Path | None = None
    token: str | None = None

    @property
    def server(self) -> str:
        """The address as kubeconfig files spell it."""
        return f"https://{self.host}:{self.port}"


class ApiError(Exception):
    """The API server refused: `code` (HTTP), `reason` (as in Status.reason) and its message."""

    def __init__(self, call: str, answer: Answer) -> None:
        super().__init__(f"{call}: {answer.code} {answer.reason}: {answer.message}")
        self.code = answer.code
        self.reason = answer.reason
        self.message = answer.message


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server sent back. `body` is {} when the answer was not a JSON object."""

    code: int
    body: JsonObject
    text: str
    headers: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """True for 2xx."""
        return 200 <= self.code < 300

    @property
    def reason(self) -> str:
        """Status.reason, such as NotFound or Invalid; empty on success."""
        return str(self.body.get("reason", "")) if not self.ok else ""

    @property
    def message(self) -> str:
        """Status.message, or the plain text of the answer."""
        return str(self.body.get("message", "") or self.text) if not self.ok else ""


@dataclass(frozen=True, slots=True)
class Resource:
    """Where objects of one kind are found."""

    api_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """URL path of the collection, one object, or its sub-resource."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        where = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        end = f"/{name}" if name else ""
        return f"{root}{where}/{self.plural}{end}" + (f"/{subresource}" if subresource else "")


class Api:
    """Calls of one user. Safe to use from several threads; each keeps a connection of its own."""

    def __init__(self, credentials: Credentials) -> None:
        self.credentials = credentials
        self._tls = ssl.create_default_context(cafile=str(credentials.ca_file))
        if credentials.certificate_file is not None:
            self._tls.load_cert_chain(credentials.certificate_file, credentials.key_file)
        self._local = threading.local()
        self._resources: dict[tuple[str, str], Resource] = {}

    # Raw calls

    def request(
        self,
        method: str,
        path: str,
        body: JsonObject | list[Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        timeout_seconds: float = REQUEST_SECONDS,
    ) -> Answer:
        """One HTTP call, answered whatever the status. Raises OSError when the server cannot be reached."""
        target = path + ("?" + urllib.parse.urlencode(query) if query else "")
        headers = {"Accept": "application/json", "Content-Type": content_type}
        if self.credentials.token:
            headers["Authorization"] = f"Bearer {self.credentials.token}"
        payload = None if body is None else json.dumps(body).encode()
        connection, fresh = self._connection(timeout_seconds)
        try:
            try:
                return self._exchange(connection, method, target, payload, headers)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                self._forget_connection()
                if fresh:
                    raise
            # An idle connection was closed by the server (it restarted): once more on a new one.
            connection, _ = self._connection(timeout_seconds)
            return self._exchange(connection, method, target, payload, headers)
        except http.client.HTTPException as error:
            self._forget_connection()
            raise OSError(f"{method} {target}: {error!r}") from error
        except OSError:
            self._forget_connection()
            raise

    def _connection(self, timeout_seconds: float) -> tuple[http.client.HTTPSConnection, bool]:
        held: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if held is not None and held.sock is not None:
            held.sock.settimeout(timeout_seconds)
            return held, False
        connection = http.client.HTTPSConnection(
            self.credentials.host, self.credentials.port, timeout=timeout_seconds, context=self._tls
        )
        self._local.connection = connection
        return connection, True

    def _forget_connection(self) -> None:
        held: http.client.HTTPSConnection | None = getattr(self._local, "connection", None)
        if held is not None:
            held.close()
        self._local.connection = None

    def close(self) -> None:
        """Close the connection of this thread."""
        self._forget_connection()

    @staticmethod
    def _exchange(
        connection: http.client.HTTPSConnection,
        method: str,
        target: str,
        payload: bytes | None,
        headers: Mapping[str, str],
    ) -> Answer:
        connection.request(method, target, body=payload, headers=dict(headers))
        response = connection.getresponse()
        text = response.read().decode(errors="replace")
        try:
            decoded = json.loads(text)
        except ValueError:
            decoded = {}
        body = decoded if isinstance(decoded, dict) else {}
        return Answer(response.status, body, text, dict(response.getheaders()))

    def call(
        self,
        method: str,
        path: str,
        body: JsonObject | list[Any] | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> JsonObject:
        """As `request`, but raises ApiError unless the answer is 2xx, and returns its object."""
        answer = self.request(method, path, body, query, content_type)
        if not answer.ok:
            raise ApiError(f"{method} {path}", answer)
        return answer.body

    # Calls by kind

    def resource(self, api_version: str, kind: str) -> Resource:
        """Plural and scope of a kind, from discovery (kept once found). Raises KeyError when not served."""
        key = (api_version, kind)
        if key not in self._resources:
            root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            answer = self.request("GET", root)
            for entry in answer.body.get("resources", []):
                if "/" not in entry["name"]:
                    found = Resource(api_version, entry["name"], bool(entry["namespaced"]))
                    self._resources[(api_version, entry["kind"])] = found
        if key not in self._resources:
            raise KeyError(f"the API server does not serve kind {kind} of {api_version}")
        return self._resources[key]

    def path_of(self, manifest: JsonObject, subresource: str = "") -> str:
        """URL path of the object a manifest describes. Raises KeyError when its kind is not served."""
        meta = manifest["metadata"]
        resource = self.resource(manifest["apiVersion"], manifest["kind"])
        return resource.path(meta.get("namespace"), meta.get("name"), subresource)

    def create(self, manifest: JsonObject) -> JsonObject:
        """POST with strict field validation. Raises ApiError."""
        resource = self.resource(manifest["apiVersion"], manifest["kind"])
        path = resource.path(manifest["metadata"].get("namespace"))
        return self.call("POST", path, manifest, {"fieldValidation": "Strict"})

    def apply(
        self, manifest: JsonObject, field_manager: str = "test", force: bool = True, subresource: str = ""
    ) -> JsonObject:
        """Server-side apply with strict field validation. Raises ApiError."""
        query = {
            "fieldManager": field_manager,
            "force": str(force).lower(),
            "fieldValidation": "Strict",
        }
        return self.call("PATCH", self.path_of(manifest, subresource), manifest, query, APPLY)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> JsonObject:
        """One object. Raises ApiError (code 404 when it is not there)."""
        return self.call("GET", self.resource(api_version, kind).path(namespace, name))

    def find(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> JsonObject | None:
        """One object, or None when the server says 404. Raises ApiError on other refusals."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as error:
            if error.code == http.client.NOT_FOUND:
                return None
            raise

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
    ) -> list[JsonObject]:
        """All objects of a kind, of one namespace or of all. Raises ApiError."""
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        query = {key: value for key, value in selectors.items() if value}
        items = self.call("GET", self.resource(api_version, kind).path(namespace), query=query)["items"]
        return [{"apiVersion": api_version, "kind": kind, **item} for item in items]

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        patch: JsonObject,
        namespace: str | None = None,
        subresource: str = "",
    ) -> JsonObject:
        """Merge patch. Raises ApiError."""
        path = self.resource(api_version, kind).path(namespace, name, subresource)
        return self.call("PATCH", path, patch, {"fieldValidation": "Strict"}, MERGE_PATCH)

    def delete(
        self,
        api_version: str,
        kind: str,
        name: str,
        namespace: str | None = None,
        options: JsonObject | None = None,
    ) -> bool:
        """Delete; False when it was not there. `options` is a DeleteOptions body. Raises ApiError."""
        path = self.resource(api_version, kind).path(namespace, name)
        answer = self.request("DELETE", path, options)
        if answer.code == http.client.NOT_FOUND:
            return False
        if not answer.ok:
            raise ApiError(f"DELETE {path}", answer)
        return True

    def wait_until(self, ready: Callable[[], bool], deadline_seconds: float, what: str) -> None:
        """Poll `ready`, taking refused calls and lost connections as "not yet". Raises TimeoutError."""
        end = time.monotonic() + deadline_seconds
        last: Exception | None = None
        while True:
            try:
                if ready():
                    return
                last = None
            except (ApiError, OSError, KeyError) as error:
                last = error
            if time.monotonic() > end:
                answer = f"; the last answer was: {last}" if last is not None else ""
                raise TimeoutError(f"waited {deadline_seconds:g} s for {what}{answer}")
            time.sleep(POLL_SECONDS)
