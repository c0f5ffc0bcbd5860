"""The summary has every figure, in bytes and seconds, and says what is unknown."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # the package ships no types
import pytest

from demo import summary
from demo.failing import Failure
from demo.memory import Footprint
from demo.moves import Injection, Move
from demo.requests_told import WindowCounts
from demo.summary import Measured
from devcluster.rest import JsonObject
from tests.demo.schema import SUMMARY

INJECTED = dt.datetime(2026, 1, 31, 12, 0, 0, tzinfo=dt.UTC)


def remap() -> JsonObject:
    seat = {"index": 0, "devices": ["0000:01:00.0"]}
    return {
        "metadata": {"name": "chat-decode-0-7-1"},
        "spec": {
            "slot": "chat-decode-0",
            "from": [{**seat, "node": "node-1"}],
            "to": [{**seat, "node": "node-2"}],
            "fromEpoch": 7,
            "epoch": 8,
            "kind": "Restorative",
            "cause": "driver reported 79 (Fatal)",
        },
        "status": {"phase": "Succeeded", "fence": {"level": "Process", "proof": "ReleaseAck"}},
    }


def failure(**seconds: float) -> Failure:
    injection = Injection("accelerator node-1/0000:01:00.0", INJECTED, monotonic=100.0)
    move = Move(remap(), epoch_before=7, seconds=seconds, injection=injection)
    return Failure(injection, move, zero_at=100.25, proof="ReleaseAck", fence_level="Process")


@pytest.fixture
def measured() -> Measured:
    tier = {"name": "DRAM", "declared": "256Mi", "admitted": "256Mi", "bound": "192Mi", "used": "1Ki"}
    return Measured(
        form="RealNodes",
        pool={"status": {"tiers": [{**tier, "foreign": "0"}]}},
        replay_requests=2000,
        hit_rate_before=0.13,
        hit_rate_after=0.28,
        hit_rate_ceiling=0.2891,
        failures=[failure(detect=0.1, cordon=0.25, fence=0.3, bind=0.4, serving=0.9)],
        windows=[WindowCounts(sent=100, failed_before_zero=3, failed_after_zero=0)],
        sent=400,
        failed=3,
        router={"revision": 5, "acknowledged": "Observed"},
        foreign_writes=0,
        objects_lost=0,
        memory=[Footprint("operator", "operator-1", 100, 200)],
        seconds=55.04,
    )


def test_the_summary_has_every_figure(measured: Measured, tmp_path: Path) -> None:
    summary.write(summary.summarise(measured), tmp_path / "summary.json")
    told = json.loads((tmp_path / "summary.json").read_text())
    jsonschema.validate(told, SUMMARY)
    assert told["seconds"] == 55.0
    assert told["pool"]["tiers"][0]["bound"] == 192 << 20
    assert told["remaps"][0]["seconds"] == {
        "detect": 0.1,
        "cordon": 0.25,
        "fence": 0.3,
        "bind": 0.4,
        "serving": 0.9,
    }
    assert told["remaps"][0]["from"] == "node-1/0000:01:00.0"
    assert told["requests"] == {"sent": 400, "failed": 3, "failedAfterWeightZero": 0}


def test_a_stage_that_the_move_does_not_record_is_null_but_for_the_cordon_that_was_seen(
    measured: Measured,
) -> None:
    measured.failures = [failure(bind=0.4)]
    seconds = summary.summarise(measured)["remaps"][0]["seconds"]
    assert seconds == {"detect": None, "cordon": 0.25, "fence": None, "bind": 0.4, "serving": None}


@pytest.mark.parametrize(
    "missing", ["form", "seconds", "pool", "replay", "remaps", "requests", "router", "audit"]
)
def test_a_summary_without_a_part_does_not_pass(measured: Measured, missing: str) -> None:
    told: dict[str, Any] = summary.summarise(measured)
    del told[missing]
    with pytest.raises(jsonschema.ValidationError, match=missing):
        jsonschema.validate(told, SUMMARY)


def test_without_a_trace_the_hit_rates_are_null(measured: Measured) -> None:
    measured.hit_rate_before = measured.hit_rate_after = None
    told = summary.summarise(measured)
    jsonschema.validate(told, SUMMARY)
    assert told["replay"]["hitRateBefore"] is None
