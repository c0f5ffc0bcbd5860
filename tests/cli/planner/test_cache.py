"""`kvpool simulate cache`, from a file to figures."""

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from kvpool.cli.faults import CliError
from kvpool.cli.planner import kvpool

OWN_RULE = """
class NewestFirst:
    def key(self, use):
        return (-use.turn,)


class NoRule:
    pass


class NoTuple:
    def key(self, use):
        return use.turn


class Text:
    def key(self, use):
        return "x"


class Wants:
    def __init__(self, more):
        pass

    def key(self, use):
        return (1,)


class Routes:
    def choose(self, ask, instances, now_ns):
        return 0


class Fails:
    def key(self, use):
        return (1 // (use.turn - 7),)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Ten requests, one a second, that take turns in using two prompts of two blocks."""
    path = tmp_path / "made.jsonl"
    lines = [
        {
            "timestamp": 1000 * second,
            "input_length": 1024,
            "output_length": 1,
            "hash_ids": [second % 2, 2 + second % 2],
        }
        for second in range(10)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def asked(*arguments: str) -> str:
    """What the command printed; its faults are raised."""
    result = CliRunner().invoke(kvpool, ["simulate", "cache", *arguments], catch_exceptions=False)
    if result.exit_code:
        raise CliError(result.output)
    return result.stdout


def asked_of(trace: Path, *arguments: str) -> str:
    # One byte a token: a block of 512 tokens is 512 bytes.
    return asked("--trace", str(trace), "--bytes-per-token", "1", *arguments)


def test_rates_come_by_capacity_and_policy_as_json(trace: Path) -> None:
    answer = json.loads(asked_of(trace, "--capacity", "4Ki,2Ki,1KiB", "-o", "json"))
    rates = {(row["policy"], row["capacityBlocks"]): row["hitRate"] for row in answer["rows"]}
    assert [row["capacityBytes"] for row in answer["rows"]] == [1024] * 3 + [2048] * 3 + [4096] * 3
    assert rates["LRU", 2] == 0.0
    # One prompt is kept all the time; it comes in two of the last five requests.
    assert rates["Belady", 2] == pytest.approx(0.4)
    assert rates["LRU", 4] == rates["Belady", 4] == rates["FIFO", 4] == 1.0
    assert (answer["measuredRequests"], answer["measuredTokens"], answer["ceiling"]) == (5, 5120, 1.0)
    assert [row["filled"] for row in answer["rows"]][-1] is False


def test_a_part_of_a_block_is_not_used(trace: Path) -> None:
    answer = json.loads(asked_of(trace, "--capacity", "1023,511", "--policy", "LRU", "-o", "json"))
    assert [row["capacityBlocks"] for row in answer["rows"]] == [0, 1]


def test_csv_has_a_row_for_each_cell(trace: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(asked_of(trace, "--capacity", "2Ki,1Ki", "-o", "csv"))))
    assert [(row["capacity"], row["policy"]) for row in rows] == [
        (capacity, policy) for capacity in ("1Ki", "2Ki") for policy in ("FIFO", "LRU", "Belady")
    ]
    assert float(rows[2]["hit_rate"]) == pytest.approx(0.4)


def test_the_table_has_a_column_for_each_policy_and_says_what_was_not_full(trace: Path) -> None:
    text = asked_of(trace, "--capacity", "1Ki,4Ki", "--policy", "LRU,Aged", "--half-life", "2s")
    assert "capacity  blocks    LRU   Aged" in text
    assert "not full before measuring began: 4Ki" in text
    assert "a cache that never evicts: 100.0 %" in text


def test_a_rule_of_ones_own_plugs_in(trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_rule.py").write_text(OWN_RULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    answer = json.loads(
        asked_of(trace, "--capacity", "1Ki", "--policy", "LRU,own_rule:NewestFirst", "-o", "json")
    )
    # Two prompts take turns in a cache for one: dropping the newest keeps the first one, as Belady does.
    assert [row["hitRate"] for row in answer["rows"]] == [0.0, pytest.approx(0.4)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--capacity", "64Gb"], "'64Gb' is not a quantity"),
        (["--capacity", ","], "names no size"),
        (["--capacity", "-1Gi"], "is below 0"),
        (["--capacity", "1Ki", "--policy", "LRV"], "did you mean LRU"),
        (["--capacity", "1Ki", "--policy", ","], "names no policy"),
        (["--capacity", "1Ki", "--half-life", "0s"], "must be above 0"),
        (["--capacity", "1Ki", "--half-life", "soon"], "is not a duration"),
        (["--capacity", "1Ki", "--policy", "nowhere_at_all:X"], "cannot be imported"),
        (["--capacity", "1Ki", "--policy", "own_rule:Absent"], "has no attribute 'Absent'"),
        (["--capacity", "1Ki", "--policy", "own_rule:NoRule"], "has neither `choose"),
        (["--capacity", "1Ki", "--policy", "own_rule:NoTuple"], "returned 1, not a tuple"),
        (["--capacity", "1Ki", "--policy", "own_rule:Text"], "returned 'x', not a tuple of numbers"),
        (["--capacity", "1Ki", "--policy", "own_rule:Wants"], r"cannot be made as Wants\(\): TypeError"),
        (["--capacity", "1Ki", "--policy", "own_rule:Routes"], "this is a routing rule"),
        (["--capacity", "1Ki", "--policy", "own_rule:Fails"], "key.. failed: ZeroDivisionError"),
    ],
)
def test_what_makes_no_sense_is_told(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[str], told: str
) -> None:
    (tmp_path / "own_rule.py").write_text(OWN_RULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(CliError, match=told):
        asked_of(trace, *arguments)


def test_a_trace_without_prefix_blocks_is_told(tmp_path: Path) -> None:
    path = tmp_path / "lengths.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n")
    with pytest.raises(CliError, match="has no prefix blocks"):
        asked("--trace", str(path), "--bytes-per-token", "1", "--capacity", "1Ki")


NOTED = """{"kvpool-trace": 1, "block_tokens": 512, "notes": {"zero_tokens": 3, "{odd} note": 4}}
{"arrival_ns": 0, "prompt_tokens": 512, "output_tokens": 1, "blocks": [1]}
"""


def test_what_a_loader_left_out_is_told_in_words_also_where_the_file_has_its_own(tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text(NOTED)
    text = asked_of(file, "--capacity", "1Ki")
    assert "3 requests without prompt or answer tokens left out" in text
    assert "{odd} note: 4" in text
