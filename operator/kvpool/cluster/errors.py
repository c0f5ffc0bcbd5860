"""What can go wrong with a request to the Kubernetes API, mapped in one table from status and body.

::

    ApiError
    ├── Conflict            409: decided on a state that has moved; read again and decide again
    │   └── AlreadyExists   the name is taken: somebody else created it first
    ├── Gone                404, 410: the object, its kind or its history is not there
    │   └── Expired         410: the resourceVersion or continue token is too old; list again
    ├── Throttled           429: wait `retry_after_seconds`
    ├── Unauthorized        401 even with credentials read afresh
    ├── Terminal            the same request will never succeed; wait for a change of its input
    └── Retryable           server errors, timeouts, broken connections; the write may have happened
"""

# ruff: noqa: N818 - the names say what happened; "Conflict" is what callers wait for, not "ConflictError"

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

_MESSAGE_LIMIT = 2048
_MOST_RETRY_SECONDS = 300
"""Whoever asks for more is no API server; our own backoff then decides."""


class ApiError(Exception):
    """A request that did not succeed.

    `status` is the HTTP status, 0 when there was no answer. `reason` is the machine-readable word of the
    Kubernetes Status object, `""` when the answer carried none. `retry_after_seconds` is what the server
    asked for, None when it did not.
    """

    def __init__(
        self,
        request: str,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.request = request
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        answer = f"{status} {reason}".strip() if status else "no answer"
        super().__init__(f"{request}: {answer}: {message}")


class Conflict(ApiError):
    """The write was decided on a state that has moved (stale resourceVersion, other UID, failed test)."""


class AlreadyExists(Conflict):
    """A create met an object of that name."""


class Gone(ApiError):
    """The object, its kind or the wanted history does not exist (any more)."""


class Expired(Gone):
    """The resourceVersion or the continue token is older than what the server keeps."""


class Throttled(ApiError):
    """The server asks to wait (`retry_after_seconds`)."""


class Unauthorized(ApiError):
    """The credentials are not accepted, also after they were read again."""


class Terminal(ApiError):
    """Repeating the same request cannot help: forbidden, invalid or malformed."""


class Retryable(ApiError):
    """The server failed or did not answer in time.

    `outcome_unknown` is True when the request may have been carried out all the same: a write has to be
    looked up before it is repeated under another decision.
    """

    def __init__(
        self,
        request: str,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        outcome_unknown: bool = True,
    ) -> None:
        super().__init__(request, status, reason, message, retry_after_seconds=retry_after_seconds)
        self.outcome_unknown = outcome_unknown


# First row that matches wins. (status, marker, error): the marker is searched in the reason, in the reasons
# of `details.causes` and in the message; None matches every answer of that status.
_TABLE: tuple[tuple[int, str | None, type[ApiError]], ...] = (
    (400, None, Terminal),
    (401, None, Unauthorized),
    (403, None, Terminal),
    (404, None, Gone),
    (408, None, Retryable),
    (409, "AlreadyExists", AlreadyExists),
    (409, None, Conflict),
    (410, None, Expired),
    # A JSON patch that does not fit the object, by its `test` above all: the server says no more than this.
    (422, "the server rejected our request due to an error in our request", Conflict),
    # The write names the UID of another incarnation.
    (422, "metadata.uid: Invalid value", Conflict),
    (422, None, Terminal),
    (429, None, Throttled),
    # Server-side apply answers 500 where the applied fields do not fit the schema.
    (500, "failed to create typed patch object", Terminal),
)


def _kind_of(status: int, text: str) -> type[ApiError]:
    for row_status, marker, kind in _TABLE:
        if row_status == status and (marker is None or marker in text):
            return kind
    # Other 4xx are answers to a malformed request; 3xx and odd codes come from something that is not
    # the API server and may go away.
    return Terminal if 400 <= status < 500 else Retryable


def from_status(
    request: str, status: int, body: Mapping[str, Any], *, retry_after: str | None = None
) -> ApiError:
    """The error for an answer whose body is a Kubernetes Status object (or any other JSON object)."""
    details = body.get("details") if isinstance(body.get("details"), Mapping) else None
    causes = [cause for cause in _listed((details or {}).get("causes")) if isinstance(cause, Mapping)]
    reason = str(body.get("reason") or "")
    message = str(body.get("message") or "no message")[:_MESSAGE_LIMIT]
    text = "\n".join((reason, message, *(f"{c.get('reason', '')}\n{c.get('message', '')}" for c in causes)))
    seconds = _retry_after_seconds(retry_after)
    if seconds is None and details is not None:
        asked = details.get("retryAfterSeconds")
        seconds = float(asked) if isinstance(asked, int) and 0 < asked <= _MOST_RETRY_SECONDS else None
    return _kind_of(status, text)(request, status, reason, message, retry_after_seconds=seconds)


def from_answer(request: str, status: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """The error for a raw answer; a body that is not a JSON object becomes the message."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        parsed = {"message": body.decode("utf-8", "replace").strip()}
    return from_status(request, status, parsed, retry_after=retry_after)


def _retry_after_seconds(header: str | None) -> float | None:
    """Seconds from a Retry-After header; its HTTP-date form needs a wall clock and counts as absent."""
    if header is None or not (header.isascii() and header.isdigit()):
        return None
    seconds = float(header)
    return seconds if seconds <= _MOST_RETRY_SECONDS else None


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
