"""The mock engine speaks as vLLM does: completions, health, and the names of its metrics."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path

import pytest

from demo.neighbours.engine_options import EngineOptions, parse_options
from demo.neighbours.engine_process import EngineProcess
from tests.harness.waiting import wait_until
from tests.neighbours.conftest import StartEngine

VLLM_NAMES = {
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:kv_cache_usage_perc",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:request_success_total",
    "vllm:time_to_first_token_seconds_count",
    "vllm:e2e_request_latency_seconds_count",
}


def complete(engine: EngineProcess, body: bytes) -> tuple[int, Message, dict[str, object]]:
    request = urllib.request.Request(f"{engine.url}/v1/completions", data=body, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers, json.load(refused)


def sample(engine: EngineProcess, name: str) -> float:
    """The value of a metric, whose labels must be those of vLLM."""
    lines = [line for line in engine.metrics().splitlines() if line.startswith(name + "{")]
    assert len(lines) == 1, lines
    assert 'model_name="qwen"' in lines[0]
    assert 'engine="0"' in lines[0]
    return float(lines[0].rpartition(" ")[2])


def test_a_completion_names_its_engine_and_counts_its_tokens(start_engine: StartEngine) -> None:
    engine = start_engine(name="decode-0", model="qwen", service_seconds=0.001)
    status, headers, body = complete(engine, b'{"prompt": "one two three", "max_tokens": 5}')
    assert status == 200
    assert headers["x-engine"] == "decode-0"
    assert headers["x-seat-epoch"] == "0"
    assert body["object"] == "text_completion"
    assert body["model"] == "qwen"
    assert body["usage"] == {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    assert sample(engine, "vllm:prompt_tokens_total") == 3
    assert sample(engine, "vllm:generation_tokens_total") == 5
    assert sample(engine, "vllm:request_success_total") == 1


def test_its_metrics_have_vllms_names(start_engine: StartEngine) -> None:
    engine = start_engine(model="qwen")
    complete(engine, b"{}")
    shown = {line.partition("{")[0] for line in engine.metrics().splitlines() if not line.startswith("#")}
    assert shown >= VLLM_NAMES


def test_requests_in_flight_show_as_running_and_fill_the_kv_cache(start_engine: StartEngine) -> None:
    engine = start_engine(model="qwen", service_seconds=2)
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(complete, engine, b"{}") for _ in range(4)]
        wait_until(lambda: sample(engine, "vllm:num_requests_running") == 4, 5, "four running requests")
        assert sample(engine, "vllm:num_requests_waiting") == 0
        assert 0 < sample(engine, "vllm:kv_cache_usage_perc") < 1
        assert [answer.result()[0] for answer in answers] == [200] * 4
    assert sample(engine, "vllm:num_requests_running") == 0


def test_an_engine_told_to_end_answers_what_it_has_begun(start_engine: StartEngine) -> None:
    engine = start_engine(model="qwen", service_seconds=1)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(complete, engine, b"{}")
        wait_until(lambda: sample(engine, "vllm:num_requests_running") == 1, 5, "a running request")
        assert engine.process.terminate() == 0
        assert answer.result()[0] == 200


@pytest.mark.parametrize("body", [b"not json", b"[1]", b'{"max_tokens": "many"}'])
def test_what_is_no_completion_request_is_refused(start_engine: StartEngine, body: bytes) -> None:
    status, _headers, answer = complete(start_engine(), body)
    assert status == 400
    assert "not a completion request" in str(answer["error"])


def test_the_command_line_says_all_that_the_options_say() -> None:
    options = EngineOptions(
        name="a",
        address="10.77.0.11",
        port=8001,
        service_seconds=0.5,
        standby=True,
        segment_bytes=16 << 20,
        master="10.77.0.1:50051",
        local_api=Path("/run/local.sock"),
        devices=("0000:01:00.0", "0000:02:00.0"),
        devices_file=Path("/run/devices.yaml"),
    )
    assert parse_options(options.arguments(), "") == options
    assert parse_options(
        ["--name", "a", "--address", "b", "--segment-bytes", "64Mi", "--master", "c:1"], ""
    ) == (EngineOptions(name="a", address="b", segment_bytes=64 << 20, master="c:1"))


def test_options_that_cannot_work_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="standby without local_api"):
        EngineOptions(name="a", address="b", standby=True)
    with pytest.raises(ValueError, match="segment_bytes 1 without a master"):
        EngineOptions(name="a", address="b", segment_bytes=1)
