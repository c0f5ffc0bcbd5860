"""The table from status and body to error types."""

from __future__ import annotations

import pytest

from kvpool.cluster.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Expired,
    Gone,
    Retryable,
    Terminal,
    Throttled,
    Unauthorized,
    from_answer,
    from_status,
)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"reason": "BadRequest"}, Terminal),
        (401, {"reason": "Unauthorized"}, Unauthorized),
        (403, {"reason": "Forbidden"}, Terminal),
        (404, {"reason": "NotFound"}, Gone),
        (405, {"reason": "MethodNotAllowed"}, Terminal),
        (408, {}, Retryable),
        (409, {"reason": "Conflict"}, Conflict),
        (409, {"reason": "AlreadyExists"}, AlreadyExists),
        (410, {"reason": "Expired"}, Expired),
        (415, {}, Terminal),
        (422, {"reason": "Invalid", "message": "spec.size: Invalid value"}, Terminal),
        (422, {"message": "the server rejected our request due to an error in our request"}, Conflict),
        (422, {"message": 'Pod "a" is invalid: metadata.uid: Invalid value: "b": field is immut'}, Conflict),
        (429, {"reason": "TooManyRequests"}, Throttled),
        (500, {"message": "failed to create typed patch object (a/b; v1, Kind=Pod)"}, Terminal),
        (500, {"reason": "InternalError", "message": "etcd is slow"}, Retryable),
        (503, {}, Retryable),
        (504, {"reason": "Timeout"}, Retryable),
        (302, {}, Retryable),
    ],
)
def test_every_answer_has_its_kind_of_error(
    status: int, body: dict[str, object], kind: type[ApiError]
) -> None:
    assert type(from_status("get pods a/b", status, body)) is kind


def test_the_servers_wish_to_wait_is_kept_from_header_or_body() -> None:
    assert from_status("x", 429, {}, retry_after="7").retry_after_seconds == 7
    assert from_status("x", 429, {"details": {"retryAfterSeconds": 3}}).retry_after_seconds == 3
    assert from_status("x", 429, {}, retry_after="Wed, 21 Oct 2026 07:28:00 GMT").retry_after_seconds is None


def test_a_wish_to_wait_for_years_is_none() -> None:
    assert from_status("x", 429, {}, retry_after="9" * 400).retry_after_seconds is None
    assert from_status("x", 429, {}, retry_after="301").retry_after_seconds is None
    assert from_status("x", 429, {"details": {"retryAfterSeconds": 2**31}}).retry_after_seconds is None
    assert from_status("x", 429, {"details": {"retryAfterSeconds": "soon"}}).retry_after_seconds is None


def test_an_answer_that_is_not_json_becomes_the_message() -> None:
    error = from_answer("get pods a/b", 502, b"<html>bad gateway</html>")
    assert isinstance(error, Retryable)
    assert str(error) == "get pods a/b: 502: <html>bad gateway</html>"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b'"text"',
        b'{"details": 3, "message": null}',
        b'{"details": {"causes": [1, "text"]}}',
        b'{"details": {"causes": 7}}',
        b"\xff\xfe",
    ],
)
def test_a_strange_body_still_gives_the_error_of_its_status(body: bytes) -> None:
    assert type(from_answer("x", 409, body)) is Conflict
