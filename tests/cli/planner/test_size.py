"""`kvpool size`: what people read, what programs read, and what is said of impossible wishes."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.planner.asking import Answered, ask
from tests.plan.timing.test_engine_config import CONFIGS

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
FILES = sorted(EXAMPLES.glob("size-*.yaml"))

PLAIN: dict[str, Any] = {
    "model": {"preset": "Qwen3-8B"},
    "serving": {"accelerator": "H200", "price": 30_000},
    "sessions": {"context": 16_000, "returns": "10m"},
    "options": [
        {
            "name": "dram",
            "links": [{"name": "pcie", "preset": "PCIe5-x16"}],
            "tiers": [
                {"name": "DRAM", "modules": 16, "size": "64G", "path": ["pcie"], "price": 350, "watts": 9}
            ],
        }
    ],
}


def changed(**changes: object) -> dict[str, Any]:
    """PLAIN with values at dotted places, written `sessions__ttft=...`."""
    document = copy.deepcopy(PLAIN)
    for place, value in changes.items():
        *steps, last = place.split("__")
        inner: Any = document
        for step in steps:
            inner = inner[int(step)] if isinstance(inner, list) else inner[step]
        inner[last] = value
    return document


def size(document: object, *flags: str) -> Answered:
    return ask("size", "-f", "-", *flags, stdin=yaml.safe_dump(document))


def option(document: object, name: str = "dram") -> dict[str, Any]:
    answered = size(document, "-o", "json")
    found: dict[str, Any] = next(one for one in answered.document["options"] if one["name"] == name)
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_example_is_answered_within_100_columns(file: Path) -> None:
    answered = ask("size", "-f", str(file))
    assert answered.code in (0, 1), answered.fault
    assert max(len(line) for line in answered.out.splitlines()) <= 100
    assert "binds at" in answered.out


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_programs_get_the_figures_that_people_get(file: Path) -> None:
    as_json = ask("size", "-f", str(file), "-o", "json").document
    assert yaml.safe_load(ask("size", "-f", str(file), "-o", "yaml").out) == as_json
    table = ask("size", "-f", str(file)).out
    for one in as_json["options"]:
        assert f"{one['sessions']:,}" in table
        assert sum(tier["sessions"] for tier in one["tiers"]) == one["sessions"]


def examples(name: str) -> dict[str, dict[str, Any]]:
    document = ask("size", "-f", str(EXAMPLES / f"size-{name}.yaml"), "-o", "json").document
    return {one["name"]: one for one in document["options"]}


def test_at_1_to_8_to_64_sessions_are_73_times_as_many_and_62_times_cheaper_until_drives_wear_out() -> None:
    found = examples("ratio")
    assert found["ideal-drives"]["gain"] == pytest.approx(73, rel=0.01)
    assert found["ideal-drives"]["cost"]["saving"] == pytest.approx(62, rel=0.01)
    assert found["real-drives"]["limitedBy"] == "Endurance"
    assert found["real-drives"]["gain"] < 30
    assert found["keeping-copies"]["gain"] == pytest.approx(64, rel=0.01)


def test_larger_modules_hold_the_same_sessions_with_fewer_watts_for_each() -> None:
    found = examples("rdimms")
    small, large = found["96x128GB"], found["24x512GB"]
    assert small["sessions"] == large["sessions"]
    assert small["cost"]["watts"] - large["cost"]["watts"] == pytest.approx(1_061 - 384, abs=1)
    assert large["cost"]["wattsPerSession"] < small["cost"]["wattsPerSession"]


def test_the_pool_outside_buys_capacity_until_the_rack_is_full_of_returns() -> None:
    assert examples("outside-the-rack")["with-pool-outside"]["pooling"]["buys"] == "Capacity"
    narrow = changed(options__0__inRackRate="1G", sessions__returns="30s")
    assert option(narrow)["pooling"]["buys"] == "Latency"


def test_a_model_is_known_by_its_config_file_as_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["Qwen3-8B"]))
    written = tmp_path / "options.yaml"
    written.write_text(yaml.safe_dump(changed(model={"config": "config.json"})))
    by_file = ask("size", "-f", str(written), "-o", "json").document
    by_name = size(PLAIN, "-o", "json").document
    assert by_file["instance"]["kvBytesPerToken"] == by_name["instance"]["kvBytesPerToken"]
    assert by_file["options"][0]["sessions"] == by_name["options"][0]["sessions"]
    assert by_file["instance"]["constants"]["provenance"] == "DataSheet"
    assert by_name["instance"]["constants"]["provenance"] == "Fitted"


def test_a_given_count_of_parameters_replaces_the_sum_over_the_matrices(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["Qwen3-8B"]))
    config = str(tmp_path / "config.json")
    given = changed(model={"config": config, "parameters": 10_000_000_000})
    assert size(given, "-o", "json").document["instance"]["weightBytes"] == 20_000_000_000


def test_with_the_bytes_of_a_token_alone_times_are_those_of_the_links() -> None:
    found = option(changed(model={"kvBytesPerToken": 100_000}))
    session = 16_000 * 100_000
    alone = {tier["name"]: tier["ttftAloneNs"] for tier in found["tiers"]}
    assert alone == {"HBM": 0, "DRAM": 20_000 + session // 50}
    assert found["recomputeNs"] is None


def test_ranks_that_hold_copies_need_more_memory_for_a_session() -> None:
    shared = changed(model={"preset": "DeepSeek-V3"}, serving__cards=8, serving__kvParallel=8)
    copied = changed(model={"preset": "DeepSeek-V3"}, serving__cards=8)
    sizes = [size(one, "-o", "json").document["instance"]["sessionBytes"] for one in (shared, copied)]
    assert sizes[1] == 8 * sizes[0]


@pytest.mark.parametrize(("text", "tokens"), [("32k", 32_000), ("32Ki", 32_768), ("0.5M", 500_000), ("7", 7)])
def test_tokens_are_written_with_the_units_of_sizes(text: str, tokens: int) -> None:
    written, plain = (
        size(changed(sessions__context=context), "-o", "json").document["instance"]["sessionBytes"]
        for context in (text, tokens)
    )
    assert written == plain == tokens * 147_456


def test_the_bytes_of_a_token_are_a_size_too() -> None:
    answered = size(changed(model={"kvBytesPerToken": "128Ki"}), "-o", "json").document
    assert answered["instance"]["kvBytesPerToken"] == 131_072


def test_a_target_below_what_is_possible_is_answered_with_by_how_much() -> None:
    answered = size(changed(sessions__ttft="10ms"))
    assert answered.code == 1
    assert (
        "! dram: nobody can be served: from HBM the first token takes 20.1 ms at best, 10 ms are allowed, "
        "2.01x of it" in " ".join(answered.out.split())
    )


def test_weights_that_do_not_fit_are_told_with_what_is_missing() -> None:
    answered = size(changed(model={"preset": "Llama-3.1-70B"}))
    assert answered.code == 1
    assert "weights of 141 GB leave no accelerator memory for KV, 18.5 GB are missing" in " ".join(
        answered.out.split()
    )


def test_where_the_weights_do_not_fit_nobody_is_served_and_no_amount_is_below_zero() -> None:
    document = changed(model={"preset": "Llama-3.1-70B"})
    answered = size(document)
    assert "the accelerators keep 0 B for KV" in answered.out
    assert "Nobody can be served: the accelerators lack 18.5 GB for the weights alone" in answered.out
    assert not re.search(r"(?<!\w)-\d", answered.out)
    found = size(document, "-o", "json").document
    assert found["instance"]["kvMemoryBytes"] == 0
    assert found["instance"]["missingBytes"] == pytest.approx(18.5e9, rel=0.01)
    assert (found["options"][0]["sessions"], found["options"][0]["cost"]["pricePerSession"]) == (0, None)


def test_where_no_whole_session_fits_beside_the_weights_nobody_is_served() -> None:
    answered = size(changed(serving__memoryUse=0.2, sessions__context=100_000))
    assert answered.code == 1
    assert "one session runs in 14.7 GB of the accelerators' own memory" in " ".join(answered.out.split())
    assert "binds at" not in answered.out


def test_more_power_than_the_cap_is_told_with_how_much() -> None:
    answered = size(changed(options__0__powerCap=800))
    assert answered.code == 1
    assert "! dram: draws 844 W, the cap is 800 W: 44.00 W too much" in answered.out


def test_a_tier_that_costs_more_than_it_pays_is_told() -> None:
    answered = size(changed(options__0__tiers__0__price=1_000_000))
    assert answered.code == 1
    assert "tier DRAM costs 15,625 per GB and pays up to" in answered.out


def test_loading_that_is_slower_than_computing_is_told() -> None:
    slow = changed(options__0__links=[{"name": "pcie", "rate": "2G"}])
    answered = size(slow)
    assert answered.code == 1
    assert "it is not worth having for these sessions" in " ".join(answered.out.split())


def test_more_prompts_than_one_instance_computes_are_told() -> None:
    busy = size(changed(sessions__returns="2s", sessions__newTokens=4_000))
    assert busy.code == 1
    assert "such instances busy: one serves" in " ".join(busy.out.split())


CALIBRATION = {
    "format": "kvpool-calibration/1",
    "date": "2026-11-30T07:00:00Z",
    "machine": {"card": "none"},
    "constants": [
        {"name": "card.copy.in", "unit": "bytes/s", "source": "Measured", "value": 40e9, "samples": 5},
        {"name": "card.copy.out", "unit": "bytes/s", "source": "NotMeasured", "reason": "no card"},
        {"name": "card.memory", "unit": "bytes", "source": "DataSheet", "value": 80e9},
    ],
}


def test_a_measured_rate_takes_the_place_of_a_preset(tmp_path: Path) -> None:
    (tmp_path / "here.json").write_text(json.dumps(CALIBRATION))
    file = str(tmp_path / "here.json")
    measured = changed(calibration=file, options__0__links=[{"name": "pcie", "measured": "card.copy.in"}])
    given = changed(options__0__links=[{"name": "pcie", "rate": 40_000_000_000}])
    assert option(measured) == option(given)


def test_constants_that_were_fitted_here_take_the_place_of_presets(tmp_path: Path) -> None:
    prefill = ("prefill_base_ns", "prefill_token_ns", "prefill_square_ns")
    names = (*prefill, "step_base_ns", "step_sequence_ns", "step_token_ns")
    fitted = [{"name": name, "unit": "ns", "source": "Fitted", "value": 1e6} for name in names]
    (tmp_path / "here.json").write_text(json.dumps({**CALIBRATION, "constants": fitted}))
    told = size(changed(calibration=str(tmp_path / "here.json")), "-o", "json").document
    assert told["instance"]["constants"]["provenance"] == "Measured"
    assert "2026-11-30" in told["instance"]["constants"]["source"]


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("card.copy.inn", "has no rate 'card.copy.inn'; did you mean 'card.copy.in'?"),
        ("card.copy.out", "card.copy.out is no measured rate: no card"),
        ("card.memory", "card.memory is no measured rate: bytes"),
    ],
)
def test_what_is_not_in_a_calibration_is_told(tmp_path: Path, name: str, fault: str) -> None:
    (tmp_path / "here.json").write_text(json.dumps(CALIBRATION))
    links = [{"name": "pcie", "measured": name}]
    answered = size(changed(calibration=str(tmp_path / "here.json"), options__0__links=links))
    assert answered.code == 2
    assert fault in answered.fault


@pytest.mark.parametrize("value", [-5, float("nan"), float("inf"), 0, 0.5])
def test_a_rate_that_cannot_be_is_refused(tmp_path: Path, value: float) -> None:
    one = {"name": "card.copy.in", "unit": "bytes/s", "source": "Measured", "value": value}
    (tmp_path / "here.json").write_text(json.dumps({**CALIBRATION, "constants": [one]}))
    links = [{"name": "pcie", "measured": "card.copy.in"}]
    answered = size(changed(calibration=str(tmp_path / "here.json"), options__0__links=links))
    assert answered.code == 2
    told = "bytes a second: measure it again" if 0 <= value < 1 else "constants.0.value: Input should be"
    assert told in answered.fault
    assert f"{value}" in answered.fault


def test_a_measured_link_needs_its_calibration_and_that_must_be_one(tmp_path: Path) -> None:
    links = [{"name": "pcie", "measured": "card.copy.in"}]
    assert "name the file in calibration" in size(changed(options__0__links=links)).fault
    (tmp_path / "other.json").write_text("{}")
    assert "no calibration: format" in size(changed(calibration=str(tmp_path / "other.json"))).fault


def test_a_domain_of_256_cards_is_told_how_much_spares_help() -> None:
    swap = {
        "detect": "5s",
        "reconfigure": "1s",
        "weightsOver": "RoCE-200G",
        "kvOver": "RoCE-200G",
    }
    document = changed(domain={"cards": 256, "downShare": 0.001, "swap": swap})
    spares = size(document, "-o", "json").document["spares"]
    assert [round(100 * share, 2) for share in spares["wholeShares"]] == [77.4, 97.22, 99.77, 99.99]
    assert spares["sparesForWanted"] == 3
    assert spares["swapOutageNs"] == 6_000_000_000 + 1_000_000 + 2 * 8_190_000_000 // 20
    assert "Until a spare serves in a card's place: 6.82 s" in size(document).out


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        (
            changed(options__0__tiers__0__pric=1),
            "options[0].tiers[0].pric: no such field; did you mean 'price'?",
        ),
        (changed(sessions__contxt=1), "sessions.contxt: no such field; did you mean 'context'?"),
        (
            changed(serving__accelerator="H20O"),
            "serving.accelerator: no accelerator 'H20O'; did you mean 'H200'?",
        ),
        (
            changed(model={"preset": "Qwen3-8b"}),
            "model.preset: no model 'Qwen3-8b'; did you mean 'Qwen3-8B'?",
        ),
        (changed(model={"preset": "x"}), "model.preset: no model 'x'; known are DeepSeek-V2-Lite, "),
        (changed(model={}), "model: give exactly one of preset, config and kvBytesPerToken, not 0"),
        (changed(sessions__returns="soon"), "sessions.returns: 'soon' is not a duration"),
        (changed(sessions__returns="10us"), "'10us' is too small, and the smallest unit is ms"),
        (changed(sessions__returns="-1s"), "'-1s' is below 0, and a duration is not"),
        (changed(sessions__returns="1.5s"), "'1.5s' has a fraction"),
        (changed(sessions__context="32K"), "'32K' is no count of tokens: write 32000, 32k (32,000) or 32Ki"),
        (changed(sessions__context=10**10), "sessions.context: 10000000000 must be at most 1,000,000,000"),
        (changed(sessions__newTokens="1.5"), "sessions.newTokens: '1.5' is not a whole number of tokens"),
        (changed(options__0__tiers__0__size=10**400), "options[0].tiers[0].size: 1000"),
        (changed(sessions__context=-1), "sessions.context: -1 must be at least 1"),
        (changed(options__0__tiers__0__size="64Q"), "options[0].tiers[0].size: '64Q' is not a quantity"),
        (
            changed(options__0__tiers__0__path=[]),
            "options[0].tiers[0].path: has 0 entries, and needs 1 or more",
        ),
        (
            changed(options__0__tiers__0__reserve="9T"),
            "options[0].tiers[0]: reserve 9000000000000 is more than",
        ),
        (changed(options__0__tiers__0__outOfRack=True), "options[0]: a tier is outOfRack: give inRackRate"),
        (
            changed(options__0__links=[{"name": "pcie"}]),
            "options[0].links[0]: give exactly one of measured, preset and rate, not 0",
        ),
        (
            changed(options__0__links=[]),
            "option 'dram': tier 'DRAM': its path names link 'pcie', known are none",
        ),
        (changed(sessions__returnShares={"SSD": 1}), "option 'dram': sessions.returnShares names tier 'SSD'"),
        (
            changed(sessions__returnShares={"HBM": 0.5, "DRAM": 0.7}),
            "sessions: returnShares add up to 1.2: give shares that add up to 1, or less",
        ),
        (changed(sessions__returnShares={"HBM": 0}), "sessions: returnShares add up to 0: give shares"),
        (changed(serving__cards=3, serving__kvParallel=2), "serving: 3 cards do not divide into 2 groups"),
        (changed(options=PLAIN["options"] * 2), "option 'dram' is given twice"),
        (changed(options=[]), "options: has 0 entries, and needs 1 or more"),
        (changed(model={"config": "config.json"}), "give its whole path when the options come from standard"),
        (changed(model={"config": "/no/such/config.json"}), "/no/such/config.json cannot be read"),
        (changed(model={"config": "/no\0such"}), "cannot be read: embedded null byte"),
        ([], "the document: [] is no set of fields"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(document: object, fault: str) -> None:
    answered = size(document)
    assert (answered.code, answered.out) == (2, "")
    assert fault in answered.fault


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "- holds 0 documents; write exactly one"),
        ("a: 1\n---\nb: 2\n", "- holds 2 documents; write exactly one"),
        ("a: [", "- cannot be read"),
        ("sessions: {a: 1,\n b: 2,\n a: 3}", "'a' is given twice, in line 1 and in line 3: keep one"),
        ('{"serving": 1,\n\t"serving": 2}', "'serving' is given twice, in line 1 and in line 2: keep one"),
        ("#" * (17 << 20), "- has more than 16 MiB"),
    ],
    ids=["empty", "two", "cut", "twice", "twice in JSON", "huge"],
)
def test_what_is_no_single_document_is_refused(text: str, fault: str) -> None:
    answered = ask("size", "-f", "-", stdin=text)
    assert answered.code == 2
    assert fault in answered.fault


def test_every_fault_of_a_file_is_told_at_once() -> None:
    answered = size(changed(sessions__contxt=1, serving__prise=2))
    assert answered.fault.count("did you mean") == 2


def test_a_config_that_describes_no_model_is_refused_by_the_field(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "list.json").write_text("[1]")
    for name, fault in (("config", "config has no num_hidden_layers"), ("list", "it holds no named fields")):
        answered = size(changed(model={"config": str(tmp_path / f"{name}.json")}))
        assert answered.code == 2
        assert fault in answered.fault


@pytest.mark.parametrize(
    "place", ["sessions__returns", "sessions__ttft", "serving__price", "options__0__tiers__0__watts"]
)
def test_what_has_no_end_is_refused_by_the_field(place: str) -> None:
    answered = size(changed(**{place: float("inf")}))
    assert answered.code == 2
    assert "inf must be at most" in answered.fault


def test_the_process_ends_with_one_message_and_the_same_bytes_whatever_the_hash_seed() -> None:
    program = "from kvpool.cli.planner import main; main()"

    def run(seed: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program, "size", *arguments]
        return subprocess.run(command, capture_output=True, env=environment, timeout=60, check=False)

    file = str(EXAMPLES / "size-retired-ddr4.yaml")
    first, second = run("1", "-f", file, "-o", "json"), run("2", "-f", file, "-o", "json")
    assert first.stdout == second.stdout
    assert first.returncode == second.returncode == 0
    missing = run("1", "-f", "no-such-file.yaml")
    assert (missing.returncode, missing.stdout) == (2, b"")
    assert missing.stderr.startswith(b"error: no-such-file.yaml cannot be read")
    assert missing.stderr.count(b"\n") == 1
