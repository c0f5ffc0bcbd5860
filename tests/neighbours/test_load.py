"""The request load keeps its pace, and every request can be set against an instant."""

from __future__ import annotations

import time
from pathlib import Path

from demo.load import LoadProcess, SentRequest, classify
from devcluster.ports import free_port
from tests.harness.waiting import wait_until
from tests.neighbours.conftest import LOOPBACK, StartEngine


def test_at_least_fifty_requests_a_second_are_sent_and_say_who_answered(
    start_engine: StartEngine, tmp_path: Path
) -> None:
    engine = start_engine(name="decode-0", service_seconds=0.2)
    load = LoadProcess(engine.url, tmp_path / "load.jsonl", requests_per_second=60)
    load.start()
    wait_until(lambda: len(load.so_far()) >= 120, 20, "120 requests")
    requests = load.stop()
    assert [request.status for request in requests] == [200] * len(requests)
    assert {(request.engine, request.epoch) for request in requests} == {("decode-0", "0")}
    assert sorted(request.number for request in requests) == list(range(len(requests)))
    span_seconds = max(request.sent_at for request in requests) - min(request.sent_at for request in requests)
    assert (len(requests) - 1) / span_seconds >= 50
    assert all(request.finished_at - request.sent_at >= 0.2 for request in requests)


def test_an_engine_that_dies_leaves_failed_requests_and_the_load_goes_on(
    start_engine: StartEngine, tmp_path: Path
) -> None:
    engine = start_engine(service_seconds=0.05)
    load = LoadProcess(engine.url, tmp_path / "load.jsonl", requests_per_second=60)
    load.start()
    wait_until(lambda: len(load.so_far()) >= 10, 20, "ten requests")
    engine.process.kill()
    killed_at = time.monotonic()
    wait_until(lambda: classify(load.so_far(), instant=killed_at).sent_after >= 10, 20, "ten more")
    requests = load.stop()
    split = classify(requests, instant=killed_at)
    assert split.failed_after == split.sent_after
    assert split.sent_before - split.failed_before >= 5
    failed = [request for request in requests if not request.succeeded]
    assert all(request.status == 0 and request.error and not request.engine for request in failed)


def test_a_gateway_that_is_not_there_is_counted_request_by_request(tmp_path: Path) -> None:
    load = LoadProcess(f"http://{LOOPBACK}:{free_port()}", tmp_path / "load.jsonl", requests_per_second=60)
    load.start()
    requests = load.stop()
    assert requests
    assert all(request.status == 0 and "Connect" in request.error for request in requests)


def test_requests_are_classified_by_when_they_were_sent() -> None:
    requests = [
        SentRequest(number=0, sent_at=1.0, finished_at=5.0, status=503),
        SentRequest(number=1, sent_at=1.5, finished_at=1.6, status=200),
        SentRequest(number=2, sent_at=2.0, finished_at=2.1, status=200),
        SentRequest(number=3, sent_at=3.0, finished_at=3.1, status=0),
    ]
    split = classify(requests, instant=2.0)
    assert (split.sent_before, split.failed_before, split.sent_after, split.failed_after) == (2, 1, 2, 1)
