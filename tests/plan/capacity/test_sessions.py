"""What a pool's status says of sessions: the tier planner's own answer for what was admitted."""

from __future__ import annotations

from typing import Any

import pytest

from kvpool.api.conditions import ConditionType
from kvpool.api.kvpool import KVPoolStatus
from kvpool.api.planning import SessionLimit
from kvpool.plan.timing.shapes import SHAPES
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, disk, dram

TOKEN_BYTES = 262144
CONTEXT = 4096


def planned(planning: dict[str, Any], **tiers: str) -> Cluster:
    budget = a_budget().giving("DRAM", "64Gi").giving("SSD", "512Gi", path="/mnt/kv")
    media = (dram(0, "64Gi"), disk("/mnt/kv", "512Gi"))
    cluster = a_cluster().with_nodes(nodes(4), *media).with_budget(budget.build())
    return cluster.with_pool(a_pool().asking(**tiers).with_spec(planning=planning).build()).settle()


def status_of(cluster: Cluster) -> KVPoolStatus:
    status: KVPoolStatus = cluster.pool().status
    return status


def explicit(**sessions: object) -> dict[str, Any]:
    """A model of 256 KiB a token and sessions of 1 GiB; the accelerators' memory is not counted."""
    return {
        "model": {"kvBytesPerToken": TOKEN_BYTES},
        "sessions": {"contextTokens": CONTEXT, **sessions},
        "placement": {"exclusive": True},
    }


def verdict(cluster: Cluster) -> tuple[str, str, str]:
    found = cluster.pool_condition(ConditionType.PLANNED, "chat")
    assert found is not None
    return found.status, found.reason, found.message


def test_a_pool_that_asks_no_planner_says_nothing_of_sessions() -> None:
    cluster = a_cluster().with_nodes(nodes(4)).with_budget(a_budget().giving("DRAM", "64Gi").build())
    status = status_of(cluster.with_pool(a_pool().asking(DRAM="64Gi").build()).settle())
    assert status.sessions is None
    assert status.model is None


def test_sessions_are_counted_in_what_was_admitted() -> None:
    cluster = planned(explicit(returnAfter="10m"), DRAM="64Gi")
    status = status_of(cluster)
    assert status.sessions is not None
    assert (status.sessions.capacity, status.sessions.limited_by) == (64, SessionLimit.CAPACITY)
    assert status.model is not None
    assert (status.model.kv_bytes_per_token, status.model.session_bytes) == (TOKEN_BYTES, 1 << 30)
    assert "one needs 1Gi, there is 16Gi" in status.sessions.message
    assert verdict(cluster)[:2] == ("True", "Capacity")


def test_sessions_that_return_often_are_limited_by_the_drives() -> None:
    status = status_of(planned(explicit(returnAfter="10s"), DRAM="64Gi", SSD="1Ti"))
    assert status.sessions is not None
    # Each node: 16 sessions in DRAM, and a drive of 6 GB/s, used to 80 %, that brings 44 others in 10 s.
    assert status.sessions.limited_by is SessionLimit.BANDWIDTH
    assert status.sessions.capacity == 4 * (16 + 44)
    assert "a second" in status.sessions.message


def test_sessions_that_must_answer_fast_are_limited_by_latency() -> None:
    status = status_of(planned(explicit(returnAfter="1h", ttft="100ms"), DRAM="64Gi", SSD="1Ti"))
    assert status.sessions is not None
    assert (status.sessions.capacity, status.sessions.limited_by) == (64, SessionLimit.LATENCY)


def test_drives_that_may_be_written_seldom_limit_by_endurance() -> None:
    planning = explicit(returnAfter="1h")
    planning["host"] = {"driveWritesPerDay": "0.3"}
    status = status_of(planned(planning, SSD="1Ti"))
    assert status.sessions is not None
    assert status.sessions.limited_by is SessionLimit.ENDURANCE
    assert status.sessions.capacity == 4 * (int(0.3 * 256) // 24)


def test_a_known_model_brings_its_bytes_and_the_accelerators_memory_counts() -> None:
    planning = {
        "model": {"preset": "Qwen3-32B"},
        "host": {"accelerators": 8},
        "sessions": {"contextTokens": CONTEXT, "returnAfter": "1h"},
    }
    status = status_of(planned(planning, DRAM="64Gi"))
    assert status.model is not None
    assert status.model.kv_bytes_per_token == SHAPES["Qwen3-32B"].kv_bytes_per_token()
    assert status.sessions is not None
    assert status.sessions.capacity > 64


@pytest.mark.parametrize(
    ("planning", "words"),
    [
        (
            {"model": {"preset": "Qwen3-32b"}},
            "model Qwen3-32b, which kvpool does not know: did you mean Qwen3-32B?",
        ),
        ({"model": {"preset": "?"}}, "known are"),
        ({"model": {"kvBytesPerToken": 1}, "host": {"accelerator": "H20"}}, "did you mean H200?"),
        ({"model": {"kvBytesPerToken": 1}, "host": {"hostLink": "PCIe5"}}, "did you mean PCIe5-x16?"),
    ],
)
def test_a_name_that_is_not_known_is_said_with_the_nearest_one(planning: dict[str, Any], words: str) -> None:
    cluster = planned(planning, DRAM="64Gi")
    status, reason, message = verdict(cluster)
    assert (status, reason) == ("False", "PresetUnknown")
    assert words in message
    assert status_of(cluster).sessions is None
    admitted = cluster.pool_condition(ConditionType.ADMITTED, "chat")
    assert admitted is not None
    assert admitted.status == "True", "what cannot be planned is bound all the same"


@pytest.mark.parametrize(
    ("preset", "context", "room"),
    [("DeepSeek-V3", 4_096, "0"), ("Qwen3-8B", 10_000_000, "98.93Gi")],
)
def test_a_session_that_no_accelerator_has_room_for_is_kept_in_no_tier(
    preset: str, context: int, room: str
) -> None:
    sessions = {"contextTokens": context, "returnAfter": "10m"}
    cluster = planned({"model": {"preset": preset}, "sessions": sessions}, DRAM="64Gi", SSD="2Ti")
    status = status_of(cluster)
    assert status.sessions is not None
    assert (status.sessions.capacity, status.sessions.limited_by) == (0, SessionLimit.CAPACITY)
    assert f"1 x H200 leave {room} beside the weights" in status.sessions.message
    assert verdict(cluster) == ("False", "NothingFits", status.sessions.message)


def test_when_nothing_fits_the_limit_is_named_with_both_figures() -> None:
    cluster = planned(explicit(contextTokens=4 * 1024 * 1024), DRAM="64Gi")
    assert verdict(cluster)[:2] == ("False", "NothingFits")
    assert "one needs 1Ti, there is 16Gi" in verdict(cluster)[2]
