"""Runs a scenario: `run(scenario, workload)` gives a report; equal inputs give equal ones, byte for byte."""

import hashlib
import json
from collections.abc import Callable

from kvpool.plan.known_name import known_name
from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.routing.router import RouterFactory
from kvpool.sim.building import (
    PlanError,
    at_speed,
    bytes_per_token,
    faults_of,
    fleet_of,
    objectives_of,
    timing_of,
)
from kvpool.sim.generators import generate
from kvpool.sim.report.figures import Inputs, Report
from kvpool.sim.report.summary import summarise
from kvpool.sim.scenario import Scenario
from kvpool.sim.workloads.request import Workload


def workload_of(scenario: Scenario, seed: int | None = None) -> Workload:
    """Make the workload that a scenario names.

    Raises:
        ValueError: when it names none, or its parameters make none.
    """
    if scenario.workload is None:
        raise PlanError("the scenario names no workload: give a trace, or workload: {name: chat}")
    return generate(
        scenario.workload.name, scenario.workload.parameters, scenario.seed if seed is None else seed
    )


def run(
    scenario: Scenario,
    workload: Workload | None = None,
    *,
    seed: int | None = None,
    router: RouterFactory | None = None,
    eviction: Callable[[], EvictionRule] | None = None,
    told: Callable[[int], None] | None = None,
) -> Report:
    """Simulate a scenario.

    `workload` None: the one that the scenario names. `seed` None: the scenario's. `router` and `eviction`
    make rules of one's own, in the place of the scenario's. `told` is called now and then with the number
    of requests that are not done.

    Raises:
        ValueError: when something does not fit; the text says what, and by how much.
    """
    seed = scenario.seed if seed is None else seed
    workload = workload_of(scenario, seed) if workload is None else workload
    objectives = objectives_of(scenario)
    for slo_class in sorted({request.slo_class for request in workload.requests}):
        known_name("promise for class", slo_class, objectives)
    fleet = fleet_of(scenario, workload.block_tokens, seed, router, eviction)
    done = fleet.run(workload, scenario.timeline_points, told, faults_of(scenario))
    written = json.dumps(scenario.model_dump(mode="json"), sort_keys=True)
    inputs = Inputs(
        workload.source,
        workload.checksum,
        hashlib.sha256(written.encode()).hexdigest(),
        seed,
        dict(workload.notes),
    )
    timing, calibration = timing_of(scenario.model)
    fastest = at_speed(timing, max(scenario.fleet.speeds))
    size = bytes_per_token(scenario.model)
    return summarise(scenario.name, done, objectives, inputs, (calibration,), size, fastest)
