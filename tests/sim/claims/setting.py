"""Runs a claim in its short setting, with some parameters changed."""

from collections.abc import Mapping

from kvpool.cli.planning.claim_files import setting_of
from kvpool.sim.claims.register import EXPERIMENTS
from kvpool.sim.claims.row import ClaimRow
from kvpool.sim.workloads.request import Workload


def run_claim(number: str, workloads: Mapping[str, Workload], **changes: object) -> ClaimRow:
    experiment = next(one for one in EXPERIMENTS if one.claim.number == number)
    setting = {**setting_of(experiment, None, reduced=True), **changes}
    return experiment.run(experiment.parameters.model_validate(setting), workloads)
