"""Prefixes that come up from lower tiers while requests wait for them."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from kvpool.plan.placement.orders import Recency
from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.timing.model import LinkModel
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.serving.design import TierSpec
from kvpool.sim.serving.mixed import MixedFleet
from kvpool.sim.serving.split import SplitFleet
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.generators.chat import Chat, chat
from kvpool.sim.workloads.request import Request, Workload
from tests.sim.serving.fleets import (
    BLOCK,
    BYTES_PER_TOKEN,
    CARD,
    SPEC,
    WORKLOADS,
    mixed,
    mixed_fleet,
    split,
    split_fleet,
    workload,
)

FAST = LinkModel(200_000, 50_000_000_000)
SLOW = LinkModel(200_000, 100_000_000)
SMALL = replace(SPEC, capacity_tokens=20 * BLOCK + 100)
SECOND = 1_000_000_000


def returning(*tiers: TierSpec) -> list[int]:
    """A prompt, another that pushes it out of the device, and the first again; returns the last's TTFT."""
    first, other = tuple(range(16)), tuple(range(100, 116))
    requests = workload(
        Request(0, 16 * BLOCK + 1, 1, first),
        Request(20 * SECOND, 16 * BLOCK + 1, 1, other),
        Request(40 * SECOND, 16 * BLOCK + 1, 1, first),
    )
    run = mixed_fleet(replace(mixed(spec=SMALL), tiers=tiers)).run(requests)
    last = run.outcomes[-1]
    return [last.ttft_ns, last.deepest, last.hit_tokens]


def test_a_prefix_in_host_memory_is_loaded_when_that_is_faster() -> None:
    ttft, deepest, hit = returning(TierSpec(Tier.DRAM, 100 * BLOCK, FAST))
    lost = 12 * BLOCK  # 4 blocks of it were still in the device
    load = FAST.transfer_ns(lost * BYTES_PER_TOKEN)
    assert (deepest, hit) == (Tier.DRAM, 16 * BLOCK)
    assert ttft == pytest.approx(load + CARD.prefill_ns(16 * BLOCK + 1, 16 * BLOCK), rel=0.01)


def test_a_prefix_behind_a_slow_link_is_computed_again_and_said_to_be() -> None:
    ttft, deepest, hit = returning(TierSpec(Tier.SSD, 100 * BLOCK, SLOW))
    assert (deepest, hit) == (Tier.RECOMPUTE, 4 * BLOCK)
    # Chunks of 2048 tokens: three steps more than one prefill has.
    assert ttft == pytest.approx(CARD.prefill_ns(16 * BLOCK + 1, 4 * BLOCK), rel=0.05)


def test_without_a_tier_it_is_computed_again() -> None:
    assert returning()[1:] == [Tier.RECOMPUTE, 4 * BLOCK]


def test_who_loads_a_part_and_computes_the_rest_again_stands_at_the_tier_it_loaded_from() -> None:
    first, other = tuple(range(16)), tuple(range(100, 116))
    requests = workload(
        Request(0, 16 * BLOCK + 1, 1, first),
        Request(20 * SECOND, 16 * BLOCK + 1, 1, other),
        Request(40 * SECOND, 16 * BLOCK + 1, 1, first[:8]),
        Request(60 * SECOND, 16 * BLOCK + 1, 1, other),
        Request(80 * SECOND, 16 * BLOCK + 1, 1, first),
    )
    tiers = (TierSpec(Tier.DRAM, 14 * BLOCK, FAST),)
    run = mixed_fleet(replace(mixed(spec=SMALL), tiers=tiers)).run(requests)
    partly = [one for one in run.outcomes if one.loaded_tokens and one.hit_tokens < 16 * BLOCK]
    assert partly
    assert all(one.deepest is Tier.DRAM for one in partly)


def test_what_lies_in_the_third_tier_crosses_both_ways_and_names_the_third() -> None:
    run = mixed_fleet(
        replace(
            mixed(spec=SMALL),
            tiers=(TierSpec(Tier.DRAM, 4 * BLOCK, FAST), TierSpec(Tier.SSD, 100 * BLOCK, FAST)),
        )
    ).run(
        workload(
            Request(0, 16 * BLOCK + 1, 1, tuple(range(16))),
            Request(20 * SECOND, 16 * BLOCK + 1, 1, tuple(range(100, 116))),
            Request(40 * SECOND, 16 * BLOCK + 1, 1, tuple(range(16))),
        )
    )
    last = run.outcomes[-1]
    assert last.deepest is Tier.SSD
    assert last.loaded_tokens == {Tier.DRAM: 4 * BLOCK, Tier.SSD: 8 * BLOCK}
    assert run.links["SSD-0"].moved_bytes == 8 * BLOCK * BYTES_PER_TOKEN
    assert run.links["DRAM-0"].moved_bytes == 12 * BLOCK * BYTES_PER_TOKEN


def test_a_pool_that_all_share_serves_what_another_instance_computed() -> None:
    first, other = tuple(range(16)), tuple(range(100, 116))
    requests = workload(
        Request(0, 16 * BLOCK + 1, 1, first),
        Request(1, 10, 1),
        Request(20 * SECOND, 16 * BLOCK + 1, 1, other),
        Request(40 * SECOND, 16 * BLOCK + 1, 1, first),
    )
    deepest = {}
    for shared in (False, True):
        tier = TierSpec(Tier.DRAM, 100 * BLOCK, FAST, shared)
        run = mixed_fleet(replace(mixed(2, SMALL), tiers=(tier,))).run(requests)
        deepest[shared] = run.outcomes[-1].deepest
    # The last request goes to the instance that has not seen its prompt.
    assert deepest == {False: Tier.RECOMPUTE, True: Tier.DRAM}


TIERS = (TierSpec(Tier.DRAM, 12 * BLOCK, FAST), TierSpec(Tier.SSD, 30 * BLOCK, FAST))


@pytest.mark.parametrize("shared", [False, True])
def test_recency_as_a_rule_is_the_same_as_the_built_in_order_in_every_tier(shared: bool) -> None:
    tiers = (TierSpec(Tier.DRAM, 30 * BLOCK, FAST), TierSpec(Tier.SSD, 80 * BLOCK, FAST, shared))
    log = chat(Chat(users=30, hours=0.2), 7)
    plain, ruled = (
        mixed_fleet(replace(mixed(3, SMALL), tiers=tiers, make_eviction=make)).run(log)
        for make in (None, Recency)
    )
    assert {one.deepest for one in plain.outcomes} >= {Tier.DRAM, Tier.SSD}
    assert ruled == plain


@settings(deadline=None, max_examples=40)
@given(WORKLOADS)
def test_tokens_are_conserved_with_tiers_on_both_kinds_of_fleet(requests: Workload) -> None:
    runs = [
        MixedFleet(replace(mixed(2, SMALL), tiers=TIERS), ROUTERS["RoundRobin"](Stream(0))).run(requests),
        split_fleet(replace(split(2, 2), tiers=TIERS)).run(requests),
        SplitFleet(
            replace(split(2, 2), tiers=(replace(TIERS[0], is_shared=True),)), ROUTERS["RoundRobin"](Stream(0))
        ).run(requests),
    ]
    for run in runs:
        assert all(one.end_ns > one.arrival_ns for one in run.outcomes if not one.refused)
        served = [one for one in run.outcomes if not one.refused]
        assert run.computed_tokens == sum(one.prompt_tokens - one.hit_tokens for one in served)
        for one in served:
            assert sum(one.loaded_tokens.values()) <= one.hit_tokens
            assert (one.deepest in one.loaded_tokens) == bool(one.loaded_tokens)
