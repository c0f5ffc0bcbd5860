"""What a group's status says of its ratio: what serves now, and the ratio planner's own answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvpool.api.pdgroup import PDGroup, RatioStatus
from kvpool.model.ids import ObjectKey
from kvpool.plan.groups import group_status
from tests.builders.failover import NAMESPACE, World
from tests.builders.objects import a_pool
from tests.plan.failover.test_statuses import with_prefill

KEY = ObjectKey(NAMESPACE, "chat")
LONG = {"requests": {"promptTokens": 16384, "outputTokens": 450}}
PROMISE = {"ttft": "3s", "tpot": "30ms"}


@pytest.fixture(scope="module")
def two_to_three() -> World:
    return with_prefill(2, 3)


def ratio_of(world: World, pool: dict[str, Any] | None, **spec: object) -> RatioStatus:
    """The status of the world's group with more in its spec, and a pool with that model."""
    snapshot = world.operator.snapshot()
    raw = snapshot.groups[KEY].model_dump(by_alias=True, exclude_none=True)
    raw["spec"] |= spec
    group = PDGroup.parse(raw)
    pools = {}
    if pool is not None:
        made = a_pool(group.spec.pool_ref.name, NAMESPACE).with_spec(planning={"model": pool}).build()
        pools = {ObjectKey(NAMESPACE, made.metadata.name): made}
    changed = replace(snapshot, groups={KEY: group}, pools=pools)
    return group_status(changed, group, world.now).ratio


def test_without_planning_only_what_serves_is_said(two_to_three: World) -> None:
    assert ratio_of(two_to_three, {"preset": "Qwen3-8B"}) == RatioStatus(current="2/3")


def test_long_prompts_want_three_prefill_to_two_decode_instances(two_to_three: World) -> None:
    said = ratio_of(two_to_three, {"preset": "Qwen3-8B"}, planning=LONG, slo=PROMISE)
    assert (said.current, said.recommended) == ("2/3", "3/2")
    assert "requests a second" in said.message


def test_a_cached_prefix_wants_fewer_prefill_instances(two_to_three: World) -> None:
    requests = {"requests": {**LONG["requests"], "hitPercent": 75}}
    said = ratio_of(two_to_three, {"preset": "Qwen3-8B"}, planning=requests, slo=PROMISE)
    prefill, decode = map(int, said.recommended.split("/"))
    assert prefill < decode


def test_the_bounds_of_the_group_are_kept_and_said(two_to_three: World) -> None:
    said = ratio_of(two_to_three, {"preset": "Qwen3-8B"}, planning=LONG, slo=PROMISE, ratio={"max": "2/3"})
    assert said.recommended == "2/3"
    assert said.limited_by == "RatioBounds"


def test_a_promise_below_the_physical_limit_says_by_how_much(two_to_three: World) -> None:
    said = ratio_of(two_to_three, {"preset": "Qwen3-8B"}, planning=LONG, slo={"ttft": "3s", "tpot": "1ms"})
    assert said.recommended == ""
    assert said.limited_by == "TPOT"
    assert "more than the 1.0 ms promised" in said.message


def test_prefill_instances_that_the_weights_do_not_fit_into_are_not_recommended(two_to_three: World) -> None:
    planning = {**LONG, "decode": {"accelerator": "H200", "accelerators": 16}}
    said = ratio_of(two_to_three, {"preset": "DeepSeek-V3"}, planning=planning, slo=PROMISE)
    assert (said.recommended, said.limited_by) == ("", "PrefillMemory")
    assert said.message.startswith(
        "a prefill instance holds 0 tokens beside the weights, and a prompt has 16384"
    )


@pytest.mark.parametrize(
    ("pool", "planning", "words"),
    [
        (None, LONG, "KVPool chat names no model"),
        ({"kvBytesPerToken": 1024}, LONG, "give its spec.planning.model.preset"),
        ({"preset": "Qwen3-8C"}, LONG, "did you mean Qwen3-8B?"),
        ({"preset": "Qwen3-8B"}, {**LONG, "decode": {"accelerator": "H20"}}, "did you mean H200?"),
        ({"preset": "Qwen3-8B"}, {**LONG, "transferLink": "InfiniBand"}, "did you mean InfiniBand-400G?"),
    ],
)
def test_what_is_not_known_is_said_and_nothing_is_recommended(
    two_to_three: World, pool: dict[str, Any] | None, planning: dict[str, Any], words: str
) -> None:
    said = ratio_of(two_to_three, pool, planning=planning, slo=PROMISE)
    assert said.recommended == ""
    assert said.current == "2/3"
    assert words in said.message
