"""The mock engine speaks as vLLM does: completions, health, and the names of its metrics."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from email.message import Message
from pathlib import Path

import pytest

from demo.neighbours.accelerators import Accelerator, AcceleratorFile
from demo.neighbours.engine_options import EngineOptions, parse_options
from demo.neighbours.engine_process import EngineProcess
from kvpool.api.supernode import EvidenceClass
from kvpool_agent.devices.simulated import SimulatedDevices
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
        pod_uid="uid-1",
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
    with pytest.raises(ValueError, match="local_api without pod_uid"):
        EngineOptions(name="a", address="b", local_api=Path("local.sock"))


def test_an_engine_on_a_broken_accelerator_fails_requests_until_it_is_whole_again(
    start_engine: StartEngine, tmp_path: Path
) -> None:
    accelerators = AcceleratorFile(tmp_path / "devices.json")
    accelerators.create([Accelerator("0000:01:00.0", "GPU-1"), Accelerator("0000:02:00.0", "GPU-2")])
    engine = start_engine(devices=("0000:01:00.0",), devices_file=accelerators.path)
    accelerators.add_fault("0000:02:00.0", source="driver", code="79", evidence_class=EvidenceClass.FATAL)
    accelerators.add_fault("0000:01:00.0", source="driver", code="63", evidence_class=EvidenceClass.SOFT)
    assert complete(engine, b"{}")[0] == 200  # neither another's fault nor a soft one breaks it

    accelerators.add_fault("0000:01:00.0", source="driver", code="79", evidence_class=EvidenceClass.FATAL)
    status, headers, body = complete(engine, b"{}")
    assert (status, headers["x-engine"]) == (500, "engine-0")
    assert "accelerator does not work" in str(body["error"])
    assert engine.health().status == 503

    accelerators.clear_faults("0000:01:00.0")
    assert complete(engine, b"{}")[0] == 200


def test_the_agents_provider_reads_the_file_that_the_demonstration_writes(tmp_path: Path) -> None:
    accelerators = AcceleratorFile(tmp_path / "devices.json")
    accelerators.create([Accelerator("0000:01:00.0", "GPU-1", holder_pod_uid="uid-1")])
    accelerators.add_fault("0000:01:00.0", source="driver", code="79", evidence_class=EvidenceClass.LOST)
    devices = SimulatedDevices(accelerators.path)
    (device,) = devices.poll(now_seconds=5.0) or ()
    assert devices.trouble == ""
    assert (device.id, device.uuid, device.holder_pod_uid) == ("0000:01:00.0", "GPU-1", "uid-1")
    assert [(fault.code, fault.evidence_class) for fault in device.faults] == [("79", EvidenceClass.LOST)]


def test_a_fault_of_an_accelerator_that_is_not_there_is_refused(tmp_path: Path) -> None:
    accelerators = AcceleratorFile(tmp_path / "devices.json")
    accelerators.create([])
    with pytest.raises(KeyError, match="no accelerator 'x'"):
        accelerators.add_fault("x", source="driver", code="79", evidence_class=EvidenceClass.FATAL)
