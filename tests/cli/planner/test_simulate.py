"""`kvpool simulate SCENARIO`: what people read, what programs read, and what is said of faults."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.cli.planner.asking import Answered, ask

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
FILES = sorted(EXAMPLES.glob("simulate-*.yaml"))
PLAIN: dict[str, Any] = {
    "name": "a small fleet",
    "fleet": {"instances": 2, "kvMemory": "16Gi"},
    "workload": {"name": "mix", "parameters": {"seconds": 5, "rate_per_second": 6}},
}
TRACE = "\n".join(
    json.dumps({"timestamp": 500 * at, "input_length": 900, "output_length": 20, "hash_ids": [0, at + 1]})
    for at in range(20)
)


def simulate(document: object, *flags: str) -> Answered:
    return ask("simulate", "-", *flags, stdin=yaml.safe_dump(document))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_example_can_be_simulated(file: Path) -> None:
    answered = ask("simulate", str(file), "-o", "json")
    assert answered.code == 0
    assert answered.document["runs"][0]["totals"]["served"] > 0


def test_people_read_goodput_latencies_by_tier_and_where_it_all_is_from() -> None:
    answered = simulate(PLAIN)
    assert answered.code == 0
    for words in ("goodput", "BY CLASS OF SERVICE", "DEEPEST TIER", "worst", "sha256", "A SMALL FLEET"):
        assert words in answered.out
    assert max(len(line) for line in answered.out.splitlines()) <= 100


def test_programs_read_the_same_as_json_yaml_and_csv() -> None:
    read = simulate(PLAIN, "-o", "json").document
    assert yaml.safe_load(simulate(PLAIN, "-o", "yaml").out) == read
    rows = list(csv.DictReader(io.StringIO(simulate(PLAIN, "-o", "csv").out)))
    goodput = next(row for row in rows if row["group"] == "total" and row["figure"] == "goodput")
    assert float(goodput["value"]) == read["runs"][0]["goodput"]


@pytest.mark.parametrize("output", ["table", "json", "csv", "html"])
def test_a_promise_that_no_instance_can_keep_is_a_finding_with_both_times(output: str) -> None:
    hasty = {"interactive": {"ttft": "1ms", "tpot": "1ms"}, "batch": {"ttft": "1ms", "tpot": "1ms"}}
    answered = simulate({**PLAIN, "promises": hasty}, "-o", output)
    assert answered.code == 1
    if output == "table":
        words = " ".join(answered.out.split())
        assert "What is promised binds: 0.0 %" in words
        assert "the first token takes" in words
        assert "promised are 1.0 ms (" in words
        assert "each further token takes" in words


def test_several_seeds_are_told_side_by_side() -> None:
    answered = simulate(PLAIN, "--seeds", "3", "-o", "json")
    assert [run["inputs"]["seed"] for run in answered.document["runs"]] == [0, 1, 2]
    assert "mean goodput" in simulate(PLAIN, "--seeds", "2").out


def test_a_trace_takes_the_place_of_the_workload(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(TRACE)
    found = simulate(PLAIN, "--trace", str(file), "-o", "json").document["runs"][0]
    assert found["totals"]["requests"] == 20
    assert found["inputs"]["source"] == "trace.jsonl"
    assert found["totals"]["hitTokens"] > 0
    text = simulate(PLAIN, "--trace", str(file), "--spread", "2").out
    assert "arrivals spread uniformly over 2 s" in text
    assert "_ns" not in text


OWN = """
class Last:
    def __init__(self, draws):
        pass
    def choose(self, ask, instances, now_ns):
        return len(instances) - 1

class Fails(Last):
    def choose(self, ask, instances, now_ns):
        raise KeyError("x")

class Newest:
    def key(self, use):
        return (-use.turn,)

class Text:
    def key(self, use):
        return "x"

class Leaves:
    def key(self, use):
        raise SystemExit(0)

class Nan:
    def key(self, use):
        return (float("nan"),)

class Far(Last):
    def choose(self, ask, instances, now_ns):
        return 99

class Yes(Last):
    def choose(self, ask, instances, now_ns):
        return True

class Drawless:
    def choose(self, ask, instances, now_ns):
        return 0

class Neither:
    pass
"""


def test_rules_of_ones_own_route_and_evict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_simulation_rules.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    plain = simulate(PLAIN, "-o", "json").document
    assert simulate(PLAIN, "--policy", "own_simulation_rules:Last", "-o", "json").document != plain
    assert simulate(PLAIN, "--policy", "own_simulation_rules:Newest").code == 0
    for name, message in (
        ("own_simulation_rules:Fails", "choose() failed: KeyError('x'); kvpool.plan.routing"),
        ("own_simulation_rules:Text", "key() returned 'x', not a tuple of numbers; kvpool.plan.placement"),
        ("own_simulation_rules:Nan", "key() returned (nan,), not a tuple of numbers"),
        ("own_simulation_rules:Far", "choose() returned 99, not the place of one of the 2 instances"),
        ("own_simulation_rules:Yes", "choose() returned True, not the place"),
        ("own_simulation_rules:Drawless", "cannot be made as Drawless(draws): TypeError"),
        ("own_simulation_rules:Leaves", "key() failed: SystemExit(0)"),
        ("own_simulation_rules:Neither", "neither `choose"),
        ("own_simulation_rules:None_", "no attribute"),
        ("no_such_module_of_rules:X", "cannot be imported"),
        ("RoundRobin", "module:Class"),
    ):
        answered = simulate(PLAIN, "--policy", name)
        assert answered.code == 2
        assert message in answered.fault


@pytest.mark.parametrize(
    "text",
    [
        "[" * 3000,
        "name: 2020-99-99",
        "seed: " + "9" * 5000,
        "seed: !!int x",
        "a: !!bool x",
        "a: !!timestamp x",
    ],
    ids=["deep", "date", "digits", "int", "bool", "timestamp"],
)
def test_what_the_reader_of_yaml_itself_stumbles_over_is_told(text: str) -> None:
    answered = ask("simulate", "-", stdin=text)
    assert answered.code == 2
    assert answered.fault.startswith("- cannot be read: ")


@pytest.mark.parametrize("flag", ["--spread", "--session-gap", "--rate"])
def test_nan_is_no_number_of_a_flag(flag: str) -> None:
    answered = simulate(PLAIN, flag, "nan")
    assert answered.code == 2
    assert "nan is no number" in answered.fault


def test_a_misspelt_verb_is_not_taken_for_a_file_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answered = ask("simulate", "clams")
    assert answered.code == 2
    assert answered.fault == "'clams' is neither a file nor a verb of simulate; did you mean 'claims'?"
    (tmp_path / "clams").write_text(yaml.safe_dump(PLAIN))
    assert ask("simulate", "clams").code == 0
    assert "cannot be read" in ask("simulate", "nothing.yaml").fault


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({**PLAIN, "flet": {}}, "did you mean 'fleet'"),
        ({**PLAIN, "fleet": {"instance": 1}}, "did you mean 'instances'"),
        ({**PLAIN, "fleet": {"instances": 0}}, "fleet.instances"),
        ({**PLAIN, "workload": None}, "names no workload"),
        ({**PLAIN, "failures": [{"at": 1, "instance": 0, "what": "Hosst"}]}, "did you mean 'Host'?"),
        ({**PLAIN, "fleet": {"instances": 1, "kvMemory": "lots"}}, "fleet.kvMemory"),
        ({**PLAIN, "fleet": {"instances": 1, "kvMemory": "8Ei"}}, "fleet.kvMemory"),
    ],
)
def test_what_is_wrong_with_a_scenario_is_said_in_one_message(document: object, message: str) -> None:
    answered = simulate(document)
    assert answered.code == 2
    assert message in answered.fault


def test_a_trace_without_a_request_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text("")
    assert "is empty" in simulate(PLAIN, "--trace", str(file)).fault


ALL_FOUR: Final = ", ".join(f"{{at: 5s, instance: {place}}}" for place in range(4))
WAITING: Final = (
    "model: {preset: Qwen3-8B, accelerator: H200}\n"
    "workload: {name: independent, parameters: {rate_per_second: 2, seconds: 20}}\n"
)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            "fleet: {instances: 1}\nfailures: [{at: 5s, instance: 0}]\n",
            "1 of 1 instances have failed: give spares",
        ),
        (
            f"fleet: {{instances: 4}}\nfailures: [{ALL_FOUR}]\n",
            "instances have failed: give spares, or repairedAfter",
        ),
    ],
)
def test_requests_that_nobody_will_ever_serve_end_the_run_with_what_to_do(
    tmp_path: Path, more: str, words: str
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(WAITING + more)
    ran = ask("simulate", str(file))
    assert ran.code == 2
    assert "nobody has served any since" in ran.fault
    assert words in ran.fault


@pytest.mark.parametrize(
    "more",
    [
        "failures: [{at: .inf, instance: 0}]\n",
        "failures: [{at: 1.0e+300, instance: 0}]\n",
        "reportInterval: 1.0e+300\n",
        "fleet: {instances: 2, speeds: [1.0e-300]}\n",
        "promises: {interactive: {ttft: .inf}}\n",
    ],
)
def test_times_and_speeds_without_end_are_refused(tmp_path: Path, more: str) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(WAITING + more)
    ran = ask("simulate", str(file))
    assert ran.code == 2
    assert "scenario.yaml cannot be used" in ran.fault


def test_engines_that_start_for_longer_than_is_waited_for_are_told_with_both_times(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(WAITING + "fleet: {instances: 2}\nengineStart: 2h\nfailures: [{at: 5s, instance: 0}]\n")
    ran = ask("simulate", str(file))
    assert ran.code == 2
    assert "engineStart is 7200 s" in ran.fault


def test_requests_that_fit_in_no_instance_are_a_finding_with_their_size_and_the_room() -> None:
    mix = {"name": "mix", "parameters": {"seconds": 30, "rate_per_second": 2}}
    answered = simulate({"fleet": {"instances": 2, "kvMemory": "80Mi"}, "workload": mix})
    assert answered.code == 1
    words = " ".join(answered.out.split())
    assert "Memory for KV binds:" in words
    assert "requests do not fit in an instance: the largest has" in words
    assert "and an instance has room for 568 (" in words


def test_an_empty_policy_is_told_and_not_passed_over() -> None:
    answered = simulate(PLAIN, "--policy", "")
    assert answered.code == 2
    assert "name a class as module:Class" in answered.fault
