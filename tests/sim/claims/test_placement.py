"""Claims about placement: eviction rules, prefetching, exclusive tiers, layers outside HBM."""

import gzip
from functools import cache
from pathlib import Path

import pytest

from kvpool.plan.placement.layer_groups import Fetching, growth_ns
from kvpool.sim.claims import checkpoints
from kvpool.sim.claims.layers import played_growth_ns
from kvpool.sim.claims.row import ClaimRow, Kind, Verdict
from kvpool.sim.workloads.load import load
from kvpool.sim.workloads.request import Workload
from tests.sim.claims.setting import run_claim

ROOT = Path(__file__).resolve().parents[3]
TRACES = {"C3": ("conversation",), "C13": ("conversation", "synthetic")}


@cache
def trace(name: str) -> Workload:
    file = f"mooncake_fast25_{name}_trace.jsonl"
    with gzip.open(ROOT / "traces" / f"{file}.gz", "rb") as lines:
        return load(lines, file)


def run(number: str, **changes: object) -> ClaimRow:
    # The log of coding agents is left out of the short setting.
    names = TRACES.get(number, ())
    return run_claim(number, {name: trace(name) for name in names}, **changes)


def test_on_chats_recency_moves_least_and_the_more_so_the_more_hbm_there_is() -> None:
    row = run("C3")
    assert row.verdict is Verdict.REPRODUCED
    assert (
        1.5
        < row.figures["hbm 1/25: Frequency over Recency"]
        < row.figures["hbm 1/15: Frequency over Recency"]
    )


def test_without_returns_the_rules_are_near_each_other_and_the_claim_does_not_hold() -> None:
    assert run("C3", users=300, hbm_one_in=[200], default_one_in=200).verdict is not Verdict.REPRODUCED


def test_on_documents_frequency_moves_less_than_recency_and_the_prediction() -> None:
    figures = run("C4").figures
    frequency = figures["documents 1/15: Frequency over Recency, HBM boundary"]
    assert frequency < figures["documents 1/15: EWMA over Recency, HBM boundary"] < 1.0


def test_both_boundaries_are_shown_for_the_prediction() -> None:
    row = run("C5")
    # On a steady beat with much HBM the prediction is ahead, and the row says so.
    assert row.verdict is Verdict.PARTLY
    assert "EWMA leads at agents 1/15" in row.knob
    assert "over both boundaries EWMA moves less" in row.ours
    assert row.figures["agents 1/15: EWMA over Recency, both boundaries"] < 1.0


def test_a_prediction_that_is_recency_is_called_an_identity() -> None:
    row = run("C6")
    assert (row.claim.kind, row.verdict) == (Kind.IDENTITY, Verdict.IDENTITY)
    assert row.figures["different hashes"] == 1


def test_prefetching_moves_no_byte_less_and_finds_more_at_the_top() -> None:
    row = run("C7")
    assert row.verdict is Verdict.REPRODUCED
    ratios = [value for name, value in row.figures.items() if name.endswith("bytes over those on demand")]
    changes = [value for name, value in row.figures.items() if name.endswith("in HBM, change")]
    assert ratios
    assert min(ratios) >= 1.0
    assert min(changes) > 0.0


@cache
def exclusive() -> ClaimRow:
    return run("C13")


def test_exclusive_tiers_gain_most_when_the_host_is_about_as_large_as_hbm() -> None:
    row = exclusive()
    assert row.verdict is Verdict.REPRODUCED
    assert row.figures["conversation, HBM 2000, host 2x: percent more hits"] == pytest.approx(62, abs=3)
    assert row.figures["synthetic, HBM 2000, host 8x: percent more hits"] < 6


def test_copies_that_take_time_hardly_cost_hits() -> None:
    figures = exclusive().figures
    for name in ("conversation", "synthetic"):
        assert figures[f"{name}: hits with copies that take time, percent of the hits without"] > 95
        assert figures[f"{name}: most blocks in both while they are copied"] > 0


def test_layers_outside_hbm_nearly_double_the_tokens_where_the_cache_hits_enough() -> None:
    row = run("C15")
    assert row.verdict is Verdict.REPRODUCED
    assert row.figures["settings that the planner tells wrongly"] == 0
    assert 0 < row.figures["settings as fast as before"] < row.figures["settings"]
    assert run("C15", default_working_tokens=65_536).verdict is Verdict.NO


def test_a_step_played_layer_by_layer_grows_as_the_planner_says() -> None:
    fetching = Fetching(64, 2048, 1152, 50 * 10**9, 500_000)
    assert played_growth_ns(fetching, 0.5, 30) == pytest.approx(30 * growth_ns(fetching, 0.5))
    assert played_growth_ns(fetching, 0.9, 30) == 0.0


def test_one_score_is_far_ahead_only_where_memory_is_short_and_the_row_says_so() -> None:
    row = run("C16")
    assert row.verdict is Verdict.PARTLY
    short, ample = "60 GB, 150 MB: times", "100 GB, 150 MB: times"
    assert row.figures[f"{short}, Marconi with its best weight"] > 2.0
    assert row.figures[f"{ample}, Marconi with its best weight"] < 2.0
    assert row.figures[f"{ample}, dense"] > 2.0
    assert "memory_gb" in row.knob


def test_marconi_is_compared_at_the_weight_that_suits_it_best() -> None:
    cell = checkpoints.Cell(ours_ns=10, marconi_ns={0.0: 70, 1.0: 30}, dense_ns=50)
    assert (cell.over_marconi, cell.over_untuned, cell.over_dense) == (3.0, 7.0, 5.0)


def test_the_table_of_batches_is_shown_whatever_comes_out() -> None:
    row = run("E1b")
    assert row.claim.kind is Kind.DIRECTION
    assert row.figures["batch 1, 50 GB/s: worst mean TTFT over best"] < 1.1
    slow = run("E1b", links_bytes_per_second=[10_000_000_000])
    assert slow.figures["batch 32, 10 GB/s: worst mean TTFT over best"] > 1.1
    assert slow.verdict is Verdict.NO
