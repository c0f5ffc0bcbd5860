"""Hand-offs through a leaf-spine fabric: paths, queues, and what choosing a spine changes."""

from itertools import pairwise

import pytest

from kvpool.plan.ports.spines import View
from kvpool.sim.claims.row import Verdict
from kvpool.sim.fabric.run import Chooser, run
from kvpool.sim.fabric.topology import LeafSpine
from kvpool.sim.fabric.transfers import Load, Transfer, transfers
from kvpool.sim.streams import Stream
from tests.sim.claims.setting import run_claim

GIGA = 10**9
FABRIC = LeafSpine(8, 4, 8, 50 * GIGA, 50 * GIGA)
LOAD = Load(percent=30, mean_bytes=2 * GIGA, count=400, prefill_ns_per_mebibyte=20_000)


def test_a_path_crosses_card_leaf_spine_leaf_card() -> None:
    path = FABRIC.path(source=0, destination=63, spine=3)
    assert path == (0, 64 + 3, 64 + 32 + 7 * 4 + 3, 64 + 64 + 63)
    assert max(path) < len(FABRIC.capacities())


def test_hosts_of_one_leaf_touch_no_spine() -> None:
    assert FABRIC.path(0, 1, 2) == (0, 64 + 64 + 1)


def test_half_the_uplinks_are_two_to_one() -> None:
    assert FABRIC.oversubscription == 2.0


def test_the_load_asked_for_is_offered() -> None:
    drawn = transfers(FABRIC, Load(30, 2 * GIGA, 20_000, 0), Stream(1))
    sent = sum(transfer.size_bytes for transfer in drawn)
    seconds = drawn[-1].arrived_ns / 1e9
    assert sent / seconds / (32 * 50 * GIGA) == pytest.approx(0.30, rel=0.03)


def test_only_the_first_half_sends_and_only_the_second_receives() -> None:
    for transfer in transfers(FABRIC, LOAD, Stream(1)):
        assert 0 <= transfer.source < 32 <= transfer.destination < 64


def test_a_host_prefills_one_prompt_at_a_time() -> None:
    drawn = transfers(FABRIC, LOAD, Stream(1))
    for host in range(32):
        mine = sorted(
            (transfer for transfer in drawn if transfer.source == host), key=lambda one: one.arrived_ns
        )
        for first, second in pairwise(mine):
            spent = 20_000 * second.size_bytes // (1 << 20)
            assert second.ready_ns == max(first.ready_ns, second.arrived_ns) + spent


def test_a_hand_off_alone_takes_its_size_over_the_card() -> None:
    alone = Transfer(0, 63, 5 * GIGA, arrived_ns=3, ready_ns=10)
    (done,) = run(FABRIC, [alone], Chooser(View.BOTH_ENDS), Stream(1))
    assert done.completion_ns == 100_000_000
    assert done.first_token_ns == 100_000_007


def test_two_hand_offs_at_once_meet_only_by_chance() -> None:
    both = [Transfer(0, 63, 5 * GIGA, 0, 0), Transfer(1, 62, 5 * GIGA, 0, 0)]
    met = [
        max(one.completion_ns for one in run(FABRIC, both, Chooser(View.NONE), Stream(seed)))
        for seed in range(40)
    ]
    chosen = [
        max(one.completion_ns for one in run(FABRIC, both, Chooser(View.BOTH_ENDS), Stream(seed)))
        for seed in range(40)
    ]
    assert sorted(set(met)) == [100_000_000, 200_000_000]
    assert set(chosen) == {100_000_000}


def test_hand_offs_too_short_to_ask_for_go_anywhere() -> None:
    sent = transfers(FABRIC, LOAD, Stream(1))
    nobody = run(FABRIC, sent, Chooser(View.BOTH_ENDS, shortest_ns=10**12), Stream(2))
    chance = run(FABRIC, sent, Chooser(View.NONE), Stream(2))
    assert nobody == chance


def test_the_same_seed_gives_the_same_ends() -> None:
    def ends() -> list[int]:
        sent = transfers(FABRIC, LOAD, Stream(5))
        return [one.ended_ns for one in run(FABRIC, sent, Chooser(View.BOTH_ENDS), Stream(6))]

    assert ends() == ends()


def test_the_more_a_chooser_sees_the_sooner_hand_offs_end() -> None:
    sent = transfers(FABRIC, Load(30, 2 * GIGA, 1_500, 0), Stream(1))
    means = {}
    for view in View:
        done = run(FABRIC, sent, Chooser(view), Stream(2))
        assert len(done) == len(sent)
        means[view] = sum(one.completion_ns for one in done) / len(done)
    assert means[View.BOTH_ENDS] < means[View.SOURCE_LEAF] < means[View.OWN] < 1.05 * means[View.NONE]
    assert means[View.BOTH_ENDS] < 0.75 * means[View.NONE]


def test_the_claim_holds_in_its_reduced_setting() -> None:
    row = run_claim("C17", {})
    assert row.verdict is Verdict.REPRODUCED, row.ours
    assert row.claim.number == "C17"
    name = "8 spines 1:1 load 0.30"
    assert row.figures[f"{name}: flows that a flow meets by chance, itself too, when all hosts send"] == 1.88
    assert row.figures[f"{name}: flows on the fullest uplink then, if chosen"] == 1


def test_the_claim_does_not_hold_where_uplinks_are_fatter_than_cards() -> None:
    fat = {
        "spines": 4,
        "hosts_per_leaf": 8,
        "uplink_bytes_per_second": 100 * GIGA,
        "load_percent": 30,
        "gated": True,
    }
    assert run_claim("C17", {}, flows=600, cells=[fat]).verdict is Verdict.NO
