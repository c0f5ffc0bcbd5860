"""The public baselines, each at the point where it differs from the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.plan.routing.catalogue import ROUTERS
from kvpool.plan.routing.counting import LeastLoaded, LeastOutstanding, LengthAware, RoundRobin, Uniform
from kvpool.plan.routing.dynamo import Dynamo, DynamoForm, DynamoSettings, draw_softly
from kvpool.plan.routing.llmd import NoHitLruScorer, QueueScorer, Scored, SloTiered, headroom
from kvpool.plan.routing.llmd_limits import SaturationSettings, saturation, splits
from kvpool.plan.routing.network_aware import NetworkAware
from kvpool.plan.routing.preble import ExploitExplore
from kvpool.plan.routing.views import Overlap
from kvpool.plan.timing.model import LinkModel
from kvpool.sim.streams import Stream
from tests.plan.routing.fleet import CARD, Counter, Seen, Sequence, ask

SHORT = Sequence(10, 200, 150)
LONG = Sequence(2000, 2400, 400)


@pytest.mark.parametrize("name", sorted(ROUTERS))
def test_every_named_rule_chooses_one_of_the_instances_also_when_all_are_alike(name: str) -> None:
    rule = ROUTERS[name](Stream(1))
    for count in (1, 2, 7):
        assert 0 <= rule.choose(ask(), [Seen() for _ in range(count)], 0) < count


@pytest.mark.parametrize("name", sorted(ROUTERS))
def test_the_same_draws_give_the_same_choices(name: str) -> None:
    pool = [Seen([SHORT] * 3), Seen([LONG]), Seen([LONG, SHORT])]

    def choices() -> list[int]:
        rule = ROUTERS[name](Stream(7))
        return [rule.choose(ask(prompt=prompt), pool, prompt) for prompt in range(100, 2000, 100)]

    assert choices() == choices()


def test_round_robin_goes_around() -> None:
    rule = RoundRobin()
    assert [rule.choose(ask(), [Seen()] * 3, 0) for _ in range(5)] == [0, 1, 2, 0, 1]


def test_spraying_hits_every_instance_about_equally() -> None:
    rule = Uniform(Stream(3))
    chosen = [rule.choose(ask(), [Seen()] * 4, 0) for _ in range(4000)]
    assert all(900 < chosen.count(place) < 1100 for place in range(4))


def test_counting_memory_and_length_disagree_where_requests_differ() -> None:
    pool = [Seen([LONG]), Seen([SHORT] * 3), Seen([Sequence(300, 5000, 4000)] * 2)]
    assert LeastOutstanding().choose(ask(), pool, 0) == 0
    assert LeastLoaded().choose(ask(), pool, 0) == 1
    assert LengthAware().choose(ask(), pool, 0) == 1
    assert LengthAware().choose(ask(), [pool[0], pool[2]], 0) == 1


def test_dynamo_takes_credit_by_tier_and_trades_it_for_load() -> None:
    rule = Dynamo(Counter())
    warm, cold = Seen([SHORT] * 4), Seen()
    request = ask(prompt=1000)
    device = (Overlap(device_tokens=800), Overlap())
    disk = (Overlap(disk_tokens=800), Overlap())
    assert rule.choose(replace(request, overlaps=device), [warm, cold], 0) == 0
    assert rule.choose(replace(request, overlaps=disk), [warm, cold], 0) == 1


def test_dynamos_product_punishes_prefill_where_much_decodes() -> None:
    product = Dynamo(Counter(), DynamoSettings(form=DynamoForm.PRODUCT))
    busy, queued = Seen([Sequence(10, 4000, 4000)]), Seen(prefill_tokens=5000)
    assert Dynamo(Counter()).choose(ask(), [busy, queued], 0) == 0
    assert product.choose(ask(), [busy, queued], 0) == 0
    assert product.choose(ask(), [Seen([Sequence(10, 9000, 9000)]), Seen(prefill_tokens=4000)], 0) == 1


def test_a_cold_softmax_is_the_lowest_cost_and_a_hot_one_is_any() -> None:
    stream = Stream(5)
    assert {draw_softly([3.0, 1.0, 2.0], 0.01, stream) for _ in range(200)} == {1}
    assert {draw_softly([3.0, 1.0, 2.0], 100.0, stream) for _ in range(200)} == {0, 1, 2}


def test_llmd_weighs_a_prefix_against_a_queue() -> None:
    pool = [Seen([SHORT], waiting=3), Seen([SHORT])]
    request = ask(prompt=1000, overlaps=(900, 0))
    assert Scored(Counter(), {"Prefix": 3.0, "Queue": 2.0}).choose(request, pool, 0) == 0
    assert Scored(Counter(), {"Prefix": 1.0, "Queue": 2.0}).choose(request, pool, 0) == 1


def test_llmds_queue_score_is_one_for_the_shortest_and_zero_for_the_longest() -> None:
    assert QueueScorer().score(ask(), [Seen(waiting=4), Seen(waiting=0), Seen(waiting=1)]) == [0.0, 1.0, 0.75]


def test_requests_that_nobody_has_a_prefix_of_go_around_by_last_use() -> None:
    scorer = NoHitLruScorer()
    pool = [Seen()] * 3
    order = []
    for _ in range(6):
        scores = scorer.score(ask(), pool)
        place = scores.index(max(scores))
        scorer.sent(ask(), place)
        order.append(place)
    assert order == [0, 1, 2, 0, 1, 2]
    assert scorer.score(ask(overlaps=(5, 0, 0)), pool) == [0.5, 0.5, 0.5]


def test_the_latency_tier_prefers_the_tightest_instance_that_keeps_the_promise() -> None:
    near, far = Seen([Sequence(10, 100, 1000)] * 20), Seen()
    late = Seen([Sequence(10, 100, 2000)] * 40)
    assert headroom(ask(), late) < 0 < headroom(ask(), near) < headroom(ask(), far)
    assert SloTiered(Counter(), {"Latency": 1.0}).choose(ask(), [late, far, near], 0) == 2


def test_old_figures_count_as_saturated() -> None:
    pool = [Seen(), Seen([Sequence(10, 100, 43_200)])]
    settings = SaturationSettings()
    assert saturation(pool, [0, 0], settings) == pytest.approx(0.5)
    assert saturation(pool, [300_000_000, 0], settings) == pytest.approx(1.0)
    assert saturation([Seen([], waiting=10)], [0], settings) == pytest.approx(2.0)


def test_a_prompt_that_is_mostly_cached_is_not_worth_splitting() -> None:
    assert splits(ask(prompt=1000), 0)
    assert not splits(ask(prompt=1000, overlaps=(600,)), 0)


def test_preble_goes_to_the_prefix_only_when_it_is_more_than_half() -> None:
    pool = [Seen([LONG] * 5), Seen()]
    assert ExploitExplore().choose(ask(prompt=1000, overlaps=(600, 0)), pool, 0) == 0
    assert ExploitExplore().choose(ask(prompt=1000, overlaps=(400, 0)), pool, 0) == 1


def test_a_far_instance_loses_as_much_as_its_transfer_takes() -> None:
    far = Seen(link=LinkModel(2_000_000, 1_000_000_000))
    near = Seen([Sequence(100, 500, 400)] * 10)
    big = ask(prompt=2000, bytes_per_token=500_000)
    assert NetworkAware().choose(big, [far, near], 0) == 1
    assert NetworkAware().choose(ask(prompt=2000), [far, near], 0) == 0
    assert CARD.step_ns(0, 0) < CARD.step_ns(10, 4000)
