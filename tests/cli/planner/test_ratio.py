"""`kvpool ratio`: a table of ratios with reasons, attention to experts, and what it says to bad questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kvpool.cli.faults import CliError
from kvpool.cli.planner import kvpool

PREFILL_DECODE: dict[str, Any] = {
    "model": "Qwen3-8B",
    "prefill": {"accelerator": "H200"},
    "decode": {"accelerator": "H200"},
    "link": "InfiniBand-400G",
    "ttft": "3s",
    "tpot": "30ms",
    "prompts": [16_000],
    "outputs": [450, 2_000],
    "hitPercents": [0, 50],
}
ATTENTION_EXPERTS: dict[str, Any] = {
    "attention": {"baseMicroseconds": 5, "sequenceMicroseconds": 0.05, "tokenMicroseconds": 0.00002},
    "experts": {
        "baseMicroseconds": 20,
        "tokenMicroseconds": 0.1,
        "experts": 256,
        "nodes": 8,
        "chosen": 8,
    },
    "exchange": {"setupMicroseconds": 3, "rate": "200G", "bytesPerToken": 7168},
    "sequences": 64,
    "context": 30_000,
    "microBatches": 4,
    "layers": 61,
}


def ask(document: object, *flags: str) -> Result:
    return CliRunner().invoke(kvpool, ["ratio", "-f", "-", *flags], input=yaml.safe_dump(document))


def answered(document: object) -> dict[str, Any]:
    result = ask(document, "-o", "json")
    assert result.exit_code == 0, (result.output, result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_table_has_a_row_for_every_kind_of_request_and_the_known_ratio() -> None:
    rows = answered({"prefillDecode": PREFILL_DECODE})["prefillDecode"]["requests"]
    assert [(row["outputTokens"], row["hitTokens"]) for row in rows] == [
        (450, 0),
        (450, 8_000),
        (2_000, 0),
        (2_000, 8_000),
    ]
    assert rows[0]["recommended"] == "3/2"
    assert rows[0]["limitedBy"] == "PrefillRate"
    ratios = [row["prefill"] / row["decode"] for row in rows]
    assert ratios == sorted(ratios, reverse=True)


def test_tokens_are_written_with_the_units_of_sizes() -> None:
    asked = {**PREFILL_DECODE, "prompts": ["16k", "16Ki"], "outputs": ["1k"], "hitPercents": [0]}
    rows = answered({"prefillDecode": asked})["prefillDecode"]["requests"]
    assert [(row["promptTokens"], row["outputTokens"]) for row in rows] == [(16_000, 1_000), (16_384, 1_000)]


def test_people_read_ratios_reasons_and_origins() -> None:
    result = ask({"prefillDecode": PREFILL_DECODE, "attentionExperts": ATTENTION_EXPERTS})
    assert result.exit_code == 0
    for words in ("3/2", "PrefillRate", "Fitted", "IF A CONSTANT WERE HALF", "attention instances to 1"):
        assert words in result.output
    assert max(map(len, result.output.splitlines())) <= 100


def test_sensitivity_has_every_constant_and_halving_what_limits_helps() -> None:
    swings = answered({"prefillDecode": PREFILL_DECODE})["prefillDecode"]["sensitivity"]
    by_name = {swing["constant"]: swing for swing in swings}
    assert len(by_name) == 7
    token = by_name["prefill prefill_token_ns"]
    assert token["doubled"] < token["asItIs"] < token["halved"]


def test_a_promise_that_cannot_be_kept_is_a_finding_that_says_by_how_much() -> None:
    result = ask({"prefillDecode": {**PREFILL_DECODE, "tpot": "5ms", "hitPercents": [0]}})
    assert result.exit_code == 1
    assert "0.8 ms more than the" in " ".join(result.output.split())


@pytest.mark.parametrize(("role", "other"), [("prefill", "decode"), ("decode", "prefill")])
def test_weights_that_fit_into_one_role_alone_are_refused_with_what_is_missing(role: str, other: str) -> None:
    change = {"model": "DeepSeek-V3", other: {"accelerator": "H200", "cards": 16}}
    result = ask({"prefillDecode": {**PREFILL_DECODE, **change}})
    assert isinstance(result.exception, CliError)
    assert str(result.exception) == (
        f"prefillDecode.{role}: 1 H200 have 122.6 GB for weights of 1,342.1 GB; "
        "1,219.5 GB are missing: give it more cards"
    )


def test_a_prompt_that_no_prefill_instance_has_room_for_is_a_finding() -> None:
    # Of 48 GB nine tenths, less 4 GiB and 16.38 GB of weights: 22.5 GB, at 147,456 bytes a token.
    change = {"prefill": {"accelerator": "L40S"}, "prompts": [152_000, 153_000], "outputs": [100]}
    result = ask(
        {"prefillDecode": {**PREFILL_DECODE, **change, "hitPercents": [0], "ttft": "10m"}}, "-o", "json"
    )
    assert result.exit_code == 1
    fits, does_not = json.loads(result.stdout)["prefillDecode"]["requests"]
    assert fits["limitedBy"] == "PrefillRate"
    assert does_not["limitedBy"] == "PrefillMemory"
    room = (48 * 9 * 10**8 - (4 << 30) - 2 * 8_190_000_000) // 147_456
    assert does_not["message"].startswith(f"a prefill instance holds {room} tokens beside the weights")


def test_rows_that_cannot_be_served_are_told_apart_by_what_caches_hold() -> None:
    result = ask({"prefillDecode": {**PREFILL_DECODE, "tpot": "5ms", "outputs": [450]}}, "-o", "wide")
    assert "prompt 16,000 (0 cached), answer 450: one sequence" in result.output
    assert "prompt 16,000 (8,000 cached), answer 450: one sequence" in result.output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "Qwen3-8b"}, "did you mean 'Qwen3-8B'?"),
        ({"link": "InfiniBand"}, "did you mean 'InfiniBand-400G'?"),
        ({"promptz": [5]}, "promptz: no such field; did you mean 'prompts'?"),
        ({"bounds": {"max": "three"}}, "'three' is no ratio: write 3/2"),
        ({"objective": "EndToEnd"}, "give requestsPerSecond"),
        ({"prompts": list(range(1, 101)), "outputs": list(range(1, 101))}, "more than 1000"),
        ({"prompts": []}, "prompts"),
        ({"bounds": {"min": 3, "max": 2}}, "bounds: no ratio is from 3 to 2: give a max above 0"),
        ({"bounds": {"max": 0}}, "bounds: no ratio is from 0 to 0"),
        ({"objective": "TTFT", "requestsPerSecond": float("inf")}, "requestsPerSecond: inf must be at most"),
        ({"cards": 600_000}, "600000 cards make about 600,000 splits to try for each of 4 rows"),
        (
            {"cards": 1_000, "objective": "EndToEnd", "requestsPerSecond": 5},
            "1000 cards make about 500,000 splits to try for each of 4 rows, and 1,000,000 altogether",
        ),
        ({"prompts": ["16K"]}, "prompts[0]: '16K' is no count of tokens: write 32000, 32k"),
    ],
)
def test_a_question_that_cannot_be_asked_is_told_by_field(change: dict[str, object], words: str) -> None:
    result = ask({"prefillDecode": {**PREFILL_DECODE, **change}})
    assert isinstance(result.exception, CliError)
    assert words in str(result.exception)


def test_no_question_is_refused() -> None:
    result = ask({})
    assert "give prefillDecode, attentionExperts, or both" in str(result.exception)


def test_bounds_and_objective_are_heard() -> None:
    asked = {
        **PREFILL_DECODE,
        "outputs": [450],
        "hitPercents": [0],
        "cards": 5,
        "objective": "TTFT",
        "requestsPerSecond": 3,
    }
    (free,) = answered({"prefillDecode": asked})["prefillDecode"]["requests"]
    (bound,) = answered({"prefillDecode": {**asked, "bounds": {"max": "3/2"}}})["prefillDecode"]["requests"]
    assert (free["recommended"], bound["recommended"]) == ("4/1", "3/2")


def test_attention_to_experts_is_answered_with_its_closed_form() -> None:
    found = answered({"attentionExperts": ATTENTION_EXPERTS})["attentionExperts"]
    assert abs(found["ratio"] - found["closedForm"]) < 1
    assert not found["deadZone"]


def test_where_the_last_ratio_that_was_tried_is_the_best_it_says_so() -> None:
    told = ask({"attentionExperts": ATTENTION_EXPERTS | {"mostRatio": 2}}).output
    assert "2 attention instances to 1 for experts" in told
    assert "; more than 2 were not tried (mostRatio)" in told
    assert "were not tried" not in ask({"attentionExperts": ATTENTION_EXPERTS}).output


def test_a_dead_zone_is_a_finding() -> None:
    slow = {**ATTENTION_EXPERTS, "exchange": {**ATTENTION_EXPERTS["exchange"], "rate": "1G"}, "mostRatio": 8}
    result = ask({"attentionExperts": slow})
    assert result.exit_code == 1
    assert "dead zone" in result.output


def test_an_expert_that_takes_no_time_has_no_ratio() -> None:
    experts = {**ATTENTION_EXPERTS["experts"], "tokenMicroseconds": 5e-324}
    result = ask({"attentionExperts": {**ATTENTION_EXPERTS, "experts": experts}}, "-o", "json")
    assert isinstance(result.exception, CliError)
    assert "experts.tokenMicroseconds: 5e-324 must be at least 1e-09" in str(result.exception)


def test_experts_that_cannot_be_spread_are_refused() -> None:
    uneven = {**ATTENTION_EXPERTS, "experts": {**ATTENTION_EXPERTS["experts"], "nodes": 7}}
    assert "256 experts over 7 nodes" in str(ask({"attentionExperts": uneven}).exception)


def test_the_examples_of_the_page_are_answered_as_it_says() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "find-a-ratio.md").read_text()
    examples = [part.partition("```")[0] for part in page.split("```yaml\n")[1:]]
    assert len(examples) == 2
    shown = page.partition("```console\n")[2].partition("```")[0]
    results = [ask(yaml.safe_load(example)) for example in examples]
    assert shown in results[0].output
    assert "attention instances to 1 for experts" in results[1].output
