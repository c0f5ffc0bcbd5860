"""How full tiers are, by moment."""

from dataclasses import replace

import pytest

from kvpool.plan.timing.model import LinkModel
from kvpool.sim.prefixes.tier import Tier
from kvpool.sim.serving.design import TierSpec
from kvpool.sim.serving.fleet import Fleet
from kvpool.sim.workloads.request import Request
from tests.sim.serving.fleets import BLOCK, SPEC, mixed, mixed_fleet, split, split_fleet, workload

WAY = LinkModel(200_000, 50_000_000_000)
SMALL = replace(SPEC, capacity_tokens=20 * BLOCK + 100)
TIERS = (TierSpec(Tier.DRAM, 10 * BLOCK, WAY), TierSpec(Tier.SSD, 1000 * BLOCK, WAY, is_shared=True))


def fleets() -> list[Fleet]:
    return [
        mixed_fleet(replace(mixed(2, SMALL), tiers=TIERS)),
        split_fleet(replace(split(2, 1, SMALL), tiers=TIERS)),
    ]


@pytest.mark.parametrize("fleet", fleets(), ids=["mixed", "split"])
def test_the_timeline_says_how_much_each_lower_tier_holds_and_never_more_than_fits(fleet: Fleet) -> None:
    prompts = [
        Request(at * 10_000_000_000, 16 * BLOCK + 1, 1, tuple(range(100 * at, 100 * at + 16)))
        for at in range(8)
    ]
    run = fleet.run(workload(*prompts), samples=20)
    assert run.lower_capacity_tokens == {"DRAM": 20 * BLOCK, "SSD": 1000 * BLOCK}
    assert run.samples[0].lower_tokens == {"DRAM": 0, "SSD": 0}
    last = run.samples[-1].lower_tokens
    assert last["DRAM"] > 0
    assert last["SSD"] > 0
    for sample in run.samples:
        assert all(sample.lower_tokens[tier] <= room for tier, room in run.lower_capacity_tokens.items())
