"""`kvpool simulate threshold`: the table, what it says, and what is said of faults."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.planner.asking import Answered, ask

QUICK = ("--sizes", "2", "--slowest", "1,0.5", "--logs", "2", "--seconds", "60")
SCENARIO: dict[str, Any] = {
    "fleet": {"prefill": 1, "decode": 1, "kvMemory": "16Gi"},
    "routing": {"lengthError": 0.3},
    "workload": {"name": "mix", "parameters": {"seconds": 30, "rate_per_second": 20}},
}


def table(*flags: str, document: object = None) -> Answered:
    if document is None:
        return ask("simulate", "threshold", *QUICK, *flags)
    return ask("simulate", "threshold", "-", *QUICK, *flags, stdin=yaml.safe_dump(document))


def test_people_read_for_each_pool_what_is_gained_and_from_which_size_it_pays() -> None:
    answered = table()
    assert answered.code == 0
    for words in ("INSTANCES", "OVER LOGS", "PAYS", "equal cards: ", "cards from 1 down to 0.5: ", "mix 4/s"):
        assert words in answered.out
    assert max(len(line) for line in answered.out.splitlines()) <= 100


def test_programs_read_the_same_as_json_and_csv_and_equal_seeds_give_equal_answers() -> None:
    read = table("-o", "json").document
    rows = list(csv.DictReader(io.StringIO(table("-o", "csv").out)))
    assert [(int(row["decodeInstances"]), float(row["slowestCard"])) for row in rows] == [(2, 1.0), (2, 0.5)]
    assert [float(row["gainPoints"]) for row in rows] == [pool["gainPoints"] for pool in read["pools"]]
    assert [one["slowestCard"] for one in read["paysFrom"]] == [1.0, 0.5]
    assert len(read["logs"]) == 2


def test_the_model_card_and_mix_of_a_scenario_are_used() -> None:
    read = table("-o", "json", document=SCENARIO).document
    own = table("-o", "json").document
    # An H200 with an 8 B model serves far more than the card that is used without a scenario.
    assert read["pools"][0]["requestsPerSecond"] > 2 * own["pools"][0]["requestsPerSecond"]


def test_a_log_of_ones_own_is_cut_into_parts(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        "\n".join(
            json.dumps(
                {"timestamp": 250 * at, "input_length": 700, "output_length": 150, "hash_ids": [at, 0]}
            )
            for at in range(240)
        )
    )
    read = table("--trace", str(log), "-o", "json").document
    assert [one["source"] for one in read["logs"]] == [f"log.jsonl, part {part} of 2" for part in (1, 2)]
    short = ask("simulate", "threshold", "--trace", str(log), "--logs", "50", "--limit", "60")
    assert short.code == 2
    assert "60 requests, too few for 50 logs" in short.fault


def thin_log(folder: Path, requests: int, output_tokens: int) -> Path:
    log = folder / "thin.jsonl"
    lines = [
        {"timestamp": 1000 * at, "input_length": 500, "output_length": output_tokens, "hash_ids": [at]}
        for at in range(requests)
    ]
    log.write_text("\n".join(json.dumps(line) for line in lines))
    return log


def test_a_log_too_thin_to_load_a_pool_makes_no_table(tmp_path: Path) -> None:
    flags = ("--trace", str(thin_log(tmp_path, 20, 150)), "--sizes", "2", "--slowest", "1", "--logs", "1")
    answered = ask("simulate", "threshold", "-", *flags, stdin=yaml.safe_dump(SCENARIO))
    assert answered.code == 2
    assert "cannot load a pool of 2: with all its 20 requests within" in answered.fault


def test_a_log_that_loads_a_pool_only_as_one_burst_is_told_beside_the_csv(tmp_path: Path) -> None:
    log = thin_log(tmp_path, 60, 400)
    flags = ("--trace", str(log), "--sizes", "1", "--slowest", "1", "--logs", "1", "-o", "csv")
    answered = ask("simulate", "threshold", *flags)
    assert answered.code == 1
    assert "that is one burst" in answered.fault
    assert len(answered.out.splitlines()) == 2


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--sizes", "2,x"), "'x': write whole numbers"),
        (("--sizes", "0"), "0 is not between 1 and 64"),
        (("--slowest", "1.5"), "1.5 is not between 0.05 and 1"),
        (("--policy", "nowhere:Rule"), "nowhere"),
    ],
)
def test_a_wrong_flag_is_told_with_what_to_write(flags: tuple[str, ...], words: str) -> None:
    answered = ask("simulate", "threshold", *flags)
    assert answered.code == 2
    assert words in answered.fault


def test_a_class_without_a_promise_is_told() -> None:
    answered = table(document={**SCENARIO, "promises": {"interactive": {}}})
    assert answered.code == 2
    assert "class 'batch'" in answered.fault
    assert "promises.batch" in answered.fault


@pytest.mark.parametrize(
    ("memory", "words"),
    [
        ("64", "an instance has room for 0 tokens of"),
        ("100Ti", "kvMemory is 109951162777600 bytes, and weights and activations leave"),
        ("80Mi", "requests of mix"),
    ],
)
def test_memory_that_cannot_be_or_that_requests_do_not_fit_in_is_told(memory: str, words: str) -> None:
    mix = {"name": "mix", "parameters": {"seconds": 60, "rate_per_second": 4}}
    answered = table(document={"fleet": {"instances": 1, "kvMemory": memory}, "workload": mix})
    assert answered.code == 2
    assert words in answered.fault
    assert ("do not fit in an instance: the largest has" in answered.fault) == (memory == "80Mi")


def test_a_rule_of_ones_own_takes_the_place_of_the_clever_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first_only.py").write_text(
        "class First:\n"
        "    def __init__(self, draws):\n        pass\n"
        "    def choose(self, ask, instances, now_ns):\n        return 0\n"
    )
    (tmp_path / "failing.py").write_text(
        "class Fails:\n"
        "    def __init__(self, draws):\n        pass\n"
        "    def choose(self, ask, instances, now_ns):\n        return [][0]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "choose() failed: IndexError" in table("--policy", "failing:Fails").fault
    read = table("--policy", "first_only:First", "-o", "json").document
    equal = read["pools"][0]
    assert equal["slowestCard"] == 1.0
    assert equal["gainPoints"] < -3
