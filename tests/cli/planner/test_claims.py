"""`kvpool simulate claims`: which are run, with which parameters, and what is said when one cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.planner.asking import Answered, ask

ROOT = Path(__file__).resolve().parents[3]


def claims(*arguments: str) -> Answered:
    return ask("simulate", "claims", "--traces", str(ROOT / "traces"), *arguments)


def test_an_identity_says_that_it_is_one_with_claim_source_and_band() -> None:
    ran = claims("C1", "--reduced", "-o", "json")
    assert ran.code == 0
    (row,) = ran.document["claims"]
    assert (row["claim"], row["kind"], row["verdict"]) == ("C1", "Identity", "Identity")
    assert row["reading"] == "second hand"
    assert "2609.16215" in row["source"]
    assert row["band"]
    assert row["seconds"] >= 0


def test_claims_are_answered_in_the_order_of_their_numbers_however_many_run_at_once() -> None:
    alone = claims("c15", "C2", "C1", "--reduced", "-j", "1", "-o", "json").document["claims"]
    together = claims("C1", "c2", "C15", "--reduced", "-j", "3", "-o", "json").document["claims"]
    for row in (*alone, *together):
        del row["seconds"]
    assert [row["claim"] for row in alone] == ["C1", "C2", "C15"]
    assert alone == together


def test_a_parameter_can_be_set_for_one_claim_or_all() -> None:
    rows = claims(
        "C1", "C2", "--reduced", "--set", "seed=7", "--set", "c1.drawn_fillings=2", "-o", "json"
    ).document["claims"]
    assert [row["parameters"]["seed"] for row in rows] == [7, 7]
    assert rows[0]["parameters"]["drawn_fillings"] == 2


def test_a_trace_that_is_not_there_makes_a_claim_not_run_and_says_what_is_missing(tmp_path: Path) -> None:
    ran = ask("simulate", "claims", "C13", "--reduced", "--traces", str(tmp_path), "-o", "json")
    (row,) = ran.document["claims"]
    assert row["verdict"] == "NotRun"
    assert "mooncake_fast25_conversation_trace.jsonl" in row["knob"]
    assert "--traces DIR" in row["knob"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("C99",), "there is no claim 'C99'"),
        (("C1", "--set", "sed=1"), "did you mean 'seed'?"),
        (("C1", "--set", "seed"), "KEY=VALUE"),
        (("C1", "--set", "seed=many"), "does not fit C1"),
        (("C1", "--set", "C2.seed=1"), "no claim that is run has it"),
        (("C1", "--set", "seed=[1"), "cannot be read"),
    ],
)
def test_what_cannot_be_asked_says_how_to_ask(arguments: tuple[str, ...], words: str) -> None:
    ran = claims(*arguments)
    assert ran.code == 2
    assert words in " ".join(ran.fault.split())
