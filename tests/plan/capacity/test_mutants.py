"""Wrong planners that the properties and named examples must catch: each mutant is one plausible mistake."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from kvpool.api.kvnode import UnitPhase
from kvpool.api.kvpool import ReclaimPolicy
from kvpool.model.decisions import CreateKeeper
from kvpool.plan import admission, demand, grounds, keepers, offers, room, units
from kvpool.plan.budgets import Ruling
from kvpool.plan.demand import Demand, TierDemand
from kvpool.plan.figures import UnitReading
from kvpool.plan.modes import Standing
from kvpool.plan.scene import Scene
from tests.builders.cluster import Cluster, a_cluster, nodes
from tests.builders.objects import a_budget, a_pool, a_segment, a_store
from tests.plan.capacity import properties
from tests.plan.capacity.worlds import WorldPlan, world_plans

Check = Callable[[], None]
Mutate = Callable[[pytest.MonkeyPatch], None]

UNIT = "inference.chat.dram.n0"


def over_random_worlds(check: Callable[[WorldPlan], None]) -> Check:
    """Judge a property over random worlds; the first world that breaks it is enough."""

    @settings(
        max_examples=100,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(world_plans)
    def judged(plan: WorldPlan) -> None:
        check(plan)

    return judged


never_over_admits = over_random_worlds(
    lambda plan: properties.never_over_admits_a_node(plan.build().settle(), plan)
)
all_or_nothing = over_random_worlds(lambda plan: properties.gives_all_or_nothing(plan.build().settle(), plan))
bad_edit = over_random_worlds(lambda plan: properties.survives_a_bad_edit(plan.build().settle(), plan))
any_order = over_random_worlds(properties.does_not_depend_on_order)
figures_in_order = over_random_worlds(lambda plan: properties.says_figures_in_order(plan.build().settle()))


def a_bound_pool() -> Cluster:
    cluster = a_cluster().with_nodes(nodes(4)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    return cluster.with_pool(a_pool().asking(DRAM="64Gi").build()).settle()


def even() -> None:
    cluster = a_bound_pool()
    assert len({cluster.bytes_on(node) for node in nodes(4)}) == 1


def silence_moves_nothing() -> None:
    cluster = a_bound_pool()
    before = cluster.units()
    cluster.change_view("node-2", UNIT, phase=UnitPhase.LOST)
    cluster.change_agent("node-2", connected=False).wait(60.0)
    for _ in range(3):
        cluster.step()
    assert cluster.units() == before


def stale_bytes_are_unknown() -> None:
    cluster = a_bound_pool().change_agent("node-2", connected=False).wait(60.0)
    cluster.step()
    assert cluster.figures()["bound"] == "48Gi"


def one_node_at_a_time() -> None:
    cluster = a_bound_pool().with_pool(a_pool().asking(DRAM="80Gi").build())
    cluster.step()
    assert sum(unit.generation > 1 for unit in cluster.units().values()) == 1


def observe_does_nothing() -> None:
    cluster = a_cluster().with_nodes(nodes(2))
    cluster.with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_pool(a_pool().in_mode("Observe").asking(DRAM="1Gi").build()).settle()
    assert cluster.units() == {}


def both_keepers_never_live_together() -> None:
    cluster = a_bound_pool().with_pool(a_pool().asking(DRAM="80Gi").build())
    for _ in range(40):
        kept = {pod.labels["kvpool.dev/node"] for pod in cluster.keepers().values()}
        plan = cluster.step()
        made = {action.keeper.node for action in plan.actions if isinstance(action, CreateKeeper)}
        assert not made & kept
        cluster.agents_apply()


def a_young_pool_keeps_what_it_has() -> None:
    cluster = a_cluster().with_nodes(nodes(4)).with_budget(a_budget().giving("DRAM", "32Gi").build())
    cluster.with_pool(a_pool("young").born("2026-01-02T00:00:00Z").asking(DRAM="100Gi").build()).settle()
    cluster.with_pool(a_pool("old").born("2026-01-01T00:00:00Z").asking(DRAM="100Gi").build()).settle()
    assert cluster.units("old") == {}


def shared_segments_count_once() -> None:
    cluster = a_bound_pool()
    cluster.with_pool(a_pool().with_mooncake().asking(DRAM="64Gi").build()).settle()
    for node in nodes(4):
        cluster.change_view(node, UNIT, segment="host:1")
    cluster.with_store(a_store("inference/chat", a_segment("host:1", "64Gi", "8Gi"), at=cluster.now_seconds))
    cluster.wait(11.0).step()
    assert cluster.figures()["used"] == "8Gi"


def hold_keeps_what_is_used() -> None:
    cluster = a_bound_pool()
    for node in nodes(4):
        cluster.change_view(node, UNIT, used_bytes=10 << 30)
    cluster.with_pool(a_pool().asking(DRAM="32Gi").with_spec(stopPolicy="Hold").build()).settle()
    assert sum(cluster.bytes_on(node) for node in nodes(4)) == 64 << 30


def retained_units_stay() -> None:
    cluster = a_bound_pool()
    before = cluster.units()
    cluster.pools.clear()
    cluster.settle()
    assert cluster.units() == before


def forgets_the_reserve(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        room,
        "reserves_of",
        lambda ground, ruling: dict.fromkeys((source.key for source in ground.agent.sources), 0),
    )


def forgets_what_others_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(room, "_others", lambda ground, source, ours: 0)


def forgets_what_pods_request(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(room, "_requests", lambda pods, grounds: {})


def forgets_keepers_overhead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(offers, "KEEPER_OVERHEAD_BYTES", 0)
    patch.setattr(room, "keeper_bytes", lambda backend, size: size)
    patch.setattr(admission, "keeper_bytes", lambda backend, size: size)


def does_not_take_from_the_room(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "_take", lambda trial, tier, layout: None)


def counts_no_decided_units(patch: pytest.MonkeyPatch) -> None:
    honest = room._measure_tier

    def measured(found: room.Room, ground: grounds.Ground, ruling: Ruling) -> None:
        honest(found, replace(ground, kvnode=None), ruling)

    patch.setattr(room, "_measure_tier", measured)


def gives_a_part_when_all_does_not_fit(patch: pytest.MonkeyPatch) -> None:
    honest = offers.lay_out

    def partly(tier: TierDemand, found: offers.Offers) -> offers.Layout | None:
        return honest(replace(tier, wanted_bytes=min(tier.wanted_bytes, found.most_bytes)), found)

    patch.setattr(admission, "lay_out", partly)


def takes_the_first_node_first(patch: pytest.MonkeyPatch) -> None:
    def greedy(total: int, floors: list[int], caps: list[int]) -> tuple[int, ...] | None:
        if not sum(floors) <= total <= sum(caps):
            return None
        shares = list(floors)
        for place, cap in enumerate(caps):
            shares[place] += min(cap - shares[place], total - sum(shares))
        return tuple(shares)

    patch.setattr(offers, "fill", greedy)


def believes_stale_reports(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(grounds, "is_fresh", lambda agent, now: agent is not None)


def resizes_all_at_once(patch: pytest.MonkeyPatch) -> None:
    honest = units._follow_layout

    def every_node(
        scene: Scene, asked: Demand, tier: TierDemand, layout: offers.Layout, changes: units.Changes
    ) -> None:
        for node in {site.node for site in layout}:
            part = {site: size for site, size in layout.items() if site.node == node}
            honest(scene, asked, tier, part, changes)

    patch.setattr(units, "_follow_layout", every_node)


def acts_in_every_mode(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Standing, "may_act", property(lambda self: True))


def makes_new_keepers_beside_old_ones(patch: pytest.MonkeyPatch) -> None:
    honest = keepers._is_wanted
    patch.setattr(
        keepers,
        "_is_wanted",
        lambda scene, ground, unit, asked, pods: honest(
            scene, ground, unit, asked, [pod for pod in pods if pod.key.name.endswith(f"-g{unit.generation}")]
        ),
    )


def gives_the_oldest_what_others_hold(patch: pytest.MonkeyPatch) -> None:
    counts_no_decided_units(patch)


def counts_a_segment_for_each_unit(patch: pytest.MonkeyPatch) -> None:
    from kvpool.plan import pool_figures  # noqa: PLC0415 - only this mutant needs it

    def summed(readings: list[UnitReading]) -> tuple[int, int]:
        return sum(reading.used_bytes or 0 for reading in readings), 0

    patch.setattr(pool_figures, "total_used", summed)


def calls_everything_admitted_bound(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(UnitReading, "bound_bytes", property(lambda self: self.unit.size_bytes + 1))


def shrinks_whatever_is_used(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admission, "total_used", lambda readings: (0, 0))


def reclaims_retained_units(patch: pytest.MonkeyPatch) -> None:
    honest = units._reclaim
    patch.setattr(
        units,
        "_reclaim",
        lambda scene, ground, unit, changes: honest(
            scene, ground, unit.model_copy(update={"reclaim_policy": ReclaimPolicy.DRAIN}), changes
        ),
    )


def asks_pools_in_the_order_they_come(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(demand, "sorted", lambda entries, key=None: list(entries), raising=False)


JUDGED_ELSEWHERE = (never_over_admits, all_or_nothing, bad_edit, any_order, figures_in_order)
"""Properties that test_properties.py holds the planner itself to."""

MUTANTS: list[tuple[Mutate, Check]] = [
    (forgets_the_reserve, never_over_admits),
    (forgets_what_others_hold, never_over_admits),
    (forgets_what_pods_request, never_over_admits),
    (forgets_keepers_overhead, never_over_admits),
    (does_not_take_from_the_room, never_over_admits),
    (gives_a_part_when_all_does_not_fit, all_or_nothing),
    (gives_a_part_when_all_does_not_fit, bad_edit),
    (gives_the_oldest_what_others_hold, a_young_pool_keeps_what_it_has),
    (asks_pools_in_the_order_they_come, any_order),
    (takes_the_first_node_first, even),
    (believes_stale_reports, silence_moves_nothing),
    (believes_stale_reports, stale_bytes_are_unknown),
    (resizes_all_at_once, one_node_at_a_time),
    (acts_in_every_mode, observe_does_nothing),
    (makes_new_keepers_beside_old_ones, both_keepers_never_live_together),
    (counts_a_segment_for_each_unit, shared_segments_count_once),
    (calls_everything_admitted_bound, figures_in_order),
    (shrinks_whatever_is_used, hold_keeps_what_is_used),
    (reclaims_retained_units, retained_units_stay),
]


def _name(value: object) -> str:
    return getattr(value, "__name__", "check")


@pytest.mark.parametrize(("mutate", "check"), MUTANTS, ids=_name)
def test_the_mutant_is_caught_by_a_check_that_the_planner_passes(
    mutate: Mutate, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    if check not in JUDGED_ELSEWHERE:
        check()
    mutate(monkeypatch)
    with pytest.raises(AssertionError):
        check()
