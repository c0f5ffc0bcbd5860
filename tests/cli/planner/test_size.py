"""`kvpool size`: what people read, what programs read, and what is said of impossible wishes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.planner.asking import ask
from tests.cli.planner.sizes import PLAIN, changed, option, size
from tests.plan.timing.test_engine_config import CONFIGS

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
FILES = sorted(EXAMPLES.glob("size-*.yaml"))


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
