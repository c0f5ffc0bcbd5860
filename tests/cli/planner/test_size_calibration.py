"""`kvpool size` with a calibration: measured rates in the place of presets, and what is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.planner.sizes import changed, option, size

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
