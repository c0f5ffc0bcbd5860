"""`kvpool size` says what is wrong with its file: where, which value, and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.planner.asking import ask
from tests.cli.planner.sizes import PLAIN, changed, size


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
        (changed(sessions__returns="0s"), "sessions.returns: '0s' must be at least 1e-06"),
        (changed(sessions__returns=1e-308), "sessions.returns: 1e-308 must be at least 1e-06"),
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
