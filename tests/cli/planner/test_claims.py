"""`kvpool simulate claims`: which are run, with which parameters, and what is said when one cannot be."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kvpool.cli.options import Format
from kvpool.cli.printing import render
from kvpool.cli.views.claims import ClaimAnswer, claims_screen
from kvpool.sim.claims.row import Claim, ClaimRow, Kind, Reading, Verdict
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


def test_another_value_in_a_file_changes_the_run(tmp_path: Path) -> None:
    shipped = (ROOT / "docs" / "claims" / "c1.yaml").read_text()
    (tmp_path / "c1.yaml").write_text(shipped.replace("ratios: [1, 8, 64]", "ratios: [1, 8, 32]"))
    ran = claims("C1", "--reduced", "--parameters", str(tmp_path), "-o", "json")
    (row,) = ran.document["claims"]
    assert row["parameters"]["ratios"] == [1, 8, 32]
    assert (ran.code, row["verdict"]) == (1, "No")


def test_the_short_setting_is_what_its_file_says_differs(tmp_path: Path) -> None:
    shipped = (ROOT / "docs" / "claims" / "c1.yaml").read_text()
    (tmp_path / "c1.yaml").write_text(shipped.replace("  drawn_fillings: 5", "  drawn_fillings: 3"))
    asked = ("C1", "--parameters", str(tmp_path), "-o", "json")
    (short,) = claims(*asked, "--reduced").document["claims"]
    (full,) = claims(*asked).document["claims"]
    assert short["parameters"]["drawn_fillings"] == 3
    assert full["parameters"]["drawn_fillings"] == 20


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("drawn_fillings: 20\n", "", "drawn_fillings: is missing"),
        ("seed: 1\n", "sed: 1\n", "did you mean 'seed'?"),
        ("  drawn_fillings: 5", "  drawn_filings: 5", "c1.yaml, reduced, cannot be used"),
        (
            "reduced:\n  session_bytes: [64000000, 1000000000]\n  drawn_fillings: 5\n",
            "reduced: short\n",
            "reduced is not a mapping",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    shipped = (ROOT / "docs" / "claims" / "c1.yaml").read_text()
    assert old in shipped
    (tmp_path / "c1.yaml").write_text(shipped.replace(old, new))
    ran = claims("C1", "--parameters", str(tmp_path))
    assert ran.code == 2
    assert words in " ".join(ran.fault.split())
    assert "c1.yaml" in ran.fault


def test_a_claim_without_a_file_in_the_folder_is_not_run_with_other_values(tmp_path: Path) -> None:
    ran = claims("C1", "--parameters", str(tmp_path))
    assert ran.code == 2
    assert "c1.yaml cannot be read" in " ".join(ran.fault.split())


def test_a_trace_that_is_not_there_makes_a_claim_not_run_and_says_what_is_missing(tmp_path: Path) -> None:
    ran = ask("simulate", "claims", "C13", "--reduced", "--traces", str(tmp_path), "-o", "json")
    (row,) = ran.document["claims"]
    assert (ran.code, row["verdict"]) == (1, "NotRun")
    assert ran.document["findings"] == [f"C13 was not run: {row['knob']}"]
    assert "mooncake_fast25_conversation_trace.jsonl" in row["knob"]
    assert "--traces DIR" in row["knob"]


def test_people_read_kind_source_and_what_decides_in_the_narrow_table_and_in_the_wide_one() -> None:
    narrow, wide = claims("C1", "C2", "--reduced"), claims("C1", "C2", "--reduced", "-o", "wide")
    for ran in (narrow, wide):
        words = " ".join(ran.out.split())
        assert "2609.16215" in words
        assert "Identity" in words
        assert "second hand" in words
    assert "DECIDED BY" in wide.out
    assert "DECIDED BY" not in narrow.out
    assert max(len(line) for line in narrow.out.splitlines()) <= 100


def test_what_decides_a_claim_is_said_below_the_table() -> None:
    claim = Claim("C0", "a text", "a source", Reading.ABSTRACT, Kind.DIRECTION)
    row = ClaimRow(claim, "3 of 4", "all of 4", Verdict.PARTLY, "how fast the link is")
    screen = claims_screen([ClaimAnswer(row, {}, 0.0)])
    text = render(screen, Format.TABLE)
    assert "C0: Direction, abstract, a source\n  decided by: how fast the link is" in text
    assert "decided by" not in render(claims_screen([ClaimAnswer(row, {}, 0.0)], wide=True), Format.WIDE)
    assert not screen.findings


def test_nothing_of_a_run_is_left_when_it_has_answered() -> None:
    before = threading.enumerate()
    assert claims("C1", "C2", "--reduced", "-j", "2").code == 0
    assert [one for one in threading.enumerate() if one not in before] == []
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("C99",), "there is no claim 'C99'"),
        (("C1", "--set", "sed=1"), "did you mean 'seed'?"),
        (("C1", "--set", "seed"), "KEY=VALUE"),
        (("C1", "--set", "seed=many"), "does not fit C1"),
        (("C1", "--set", "C2.seed=1"), "--set C2.seed: C2 is none of the claims that are run"),
        (("C3", "--set", "hbm_one_in=[]"), "hbm_one_in: it is empty: write one value at least"),
        (("C3", "--set", "hbm_one_in=[0]"), "hbm_one_in[0]: 0 must be at least 1"),
        (("C19", "--set", "card=H20"), "card: no accelerator 'H20'; did you mean 'H200'?"),
        (("C19", "--set", "kv_parallel=99"), "C19 cannot be run with these parameters: tensor 0 and kv 99"),
        (("C1", "--set", "seed=[1"), "cannot be read"),
    ],
)
def test_what_cannot_be_asked_says_how_to_ask(arguments: tuple[str, ...], words: str) -> None:
    ran = claims(*arguments)
    assert ran.code == 2
    assert words in " ".join(ran.fault.split())


KILLED = """
import multiprocessing, os, signal
from concurrent.futures import ProcessPoolExecutor
from kvpool.cli.planning.claims import _end_with_command

if __name__ == "__main__":
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _end_with_command)
    print(pool.submit(os.getpid).result(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_no_worker_outlives_a_command_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    # The worker holds the other end of the pipe: it is read to its end when that is gone, too.
    done = subprocess.run([sys.executable, str(script)], stdout=subprocess.PIPE, timeout=60, check=False)

    assert done.returncode == -9
    assert int(done.stdout) > 0


@pytest.mark.parametrize("value", ["2020-99-99", "!!int x", "[[", "1\n---\n2"])
def test_a_value_that_cannot_be_read_is_told(value: str) -> None:
    answered = claims("C1", "--set", f"seed={value}")
    assert answered.code == 2
    assert "the value" in answered.fault
