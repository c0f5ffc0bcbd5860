"""Every published claim is in the register once, with its parameters in a file for people."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kvpool.cli.planning.claim_files import setting_of
from kvpool.cli.planning.claims import TRACE_FILES
from kvpool.cli.planning.trace_files import open_workload
from kvpool.sim.claims.experiment import Experiment
from kvpool.sim.claims.register import EXPERIMENTS
from kvpool.sim.claims.row import Kind, Verdict
from tests.sim.claims.setting import run_claim

ROOT = Path(__file__).resolve().parents[3]
CLAIMS = ROOT / "docs" / "claims"
NOT_HERE = {"C21"}
"""Claims that need not come out at all; their rows say what decides."""
NUMBERS = [*(f"C{number}" for number in range(1, 22)), "E1b"]


def named(experiment: Experiment) -> str:
    return experiment.claim.number


def test_every_claim_is_there_once_and_in_order() -> None:
    assert [experiment.claim.number for experiment in EXPERIMENTS] == NUMBERS


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=named)
def test_the_parameters_of_a_claim_are_those_of_its_file(experiment: Experiment) -> None:
    written = yaml.safe_load((CLAIMS / f"{experiment.claim.number.lower()}.yaml").read_text())
    reduced = written.pop("reduced")
    assert set(written) == set(experiment.parameters.model_fields), "a file leaves no parameter unsaid"
    assert set(reduced) < set(written), "the short setting is one of the same claim"
    assert setting_of(experiment, None, reduced=False) == written
    assert setting_of(experiment, None, reduced=True) == {**written, **reduced}


def lists_of(experiment: Experiment) -> list[str]:
    return [
        name for name, value in setting_of(experiment, None, reduced=True).items() if isinstance(value, list)
    ]


@pytest.mark.parametrize(
    ("experiment", "name"),
    [(experiment, name) for experiment in EXPERIMENTS for name in lists_of(experiment)],
    ids=lambda one: one if isinstance(one, str) else named(one),
)
def test_no_gate_is_held_against_an_empty_list(experiment: Experiment, name: str) -> None:
    with pytest.raises(ValueError, match=rf"(?m)^{name}(\.0)?$"):
        experiment.parameters.model_validate({**setting_of(experiment, None, reduced=True), name: []})


@pytest.mark.parametrize("odd", [-1, float("nan"), float("inf")])
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=named)
def test_no_number_but_the_seed_is_below_0_or_without_end(experiment: Experiment, odd: float) -> None:
    written = setting_of(experiment, None, reduced=True)
    numbers = {name for name, value in written.items() if isinstance(value, int | float)} - {"seed"}
    with pytest.raises(ValueError, match=r"validation errors? for") as refused:
        experiment.parameters.model_validate({**written, **dict.fromkeys(numbers, odd)})
    assert numbers.intersection(str(refused.value).splitlines()) == numbers


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=named)
def test_a_claim_comes_out_in_its_reduced_setting(experiment: Experiment) -> None:
    traces = ROOT / "traces"
    workloads = {name: open_workload(traces / f"{TRACE_FILES[name]}.gz") for name in experiment.traces}
    first = run_claim(experiment.claim.number, workloads)
    assert first.claim == experiment.claim
    assert (first.verdict is Verdict.IDENTITY) == (first.claim.kind is Kind.IDENTITY)
    assert first.verdict is not Verdict.NOT_RUN
    assert first.verdict is not Verdict.NO or first.claim.number in NOT_HERE, first.ours
    assert first.ours
    assert first.band
    assert first.verdict is not Verdict.PARTLY or first.knob, "what holds in part says what decides"
    assert set(first.checksums) <= {workload.source for workload in workloads.values()}
