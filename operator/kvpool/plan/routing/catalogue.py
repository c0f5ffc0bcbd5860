"""The routing rules that have a name."""

from collections.abc import Callable, Mapping
from typing import Final

from kvpool.plan.routing.completion_time import CompletionTime
from kvpool.plan.routing.counting import LeastLoaded, LeastOutstanding, LengthAware, RoundRobin, Uniform
from kvpool.plan.routing.dynamo import Dynamo, DynamoForm, DynamoSettings
from kvpool.plan.routing.guards import Guarded
from kvpool.plan.routing.llmd import Scored, SloTiered
from kvpool.plan.routing.network_aware import NetworkAware
from kvpool.plan.routing.preble import ExploitExplore
from kvpool.plan.routing.prefill import Conductor, ConductorSettings, EarliestPrefill, RoundRobinPrefill
from kvpool.plan.routing.router import PrefillRouter, RouterFactory

LLMD_WEIGHTS: Final[Mapping[str, float]] = {"Prefix": 3.0, "Queue": 2.0, "Kv": 2.0}
"""Those of llm-d's own guide for scheduling by prefix and load."""

ROUTERS: Final[Mapping[str, RouterFactory]] = {
    "RoundRobin": lambda draws: RoundRobin(),
    "Uniform": Uniform,
    "LeastOutstanding": lambda draws: LeastOutstanding(),
    "LeastLoaded": lambda draws: LeastLoaded(),
    "LengthAware": lambda draws: LengthAware(),
    "CompletionTime": lambda draws: CompletionTime(),
    "GuardedCompletionTime": lambda draws: Guarded(CompletionTime(), draws),
    "Dynamo": Dynamo,
    "DynamoLmetric": lambda draws: Dynamo(draws, DynamoSettings(form=DynamoForm.PRODUCT)),
    "DynamoOverlap": lambda draws: Dynamo(draws, DynamoSettings(form=DynamoForm.OVERLAP)),
    "LlmD": lambda draws: Scored(draws, LLMD_WEIGHTS),
    "LlmDLoadAware": lambda draws: Scored(draws, {"Prefix": 2.0, "LoadAware": 1.0, "NoHitLru": 1.0}),
    "LlmDTokenLoad": lambda draws: Scored(draws, {"TokenLoad": 1.0}),
    "LlmDLatency": lambda draws: SloTiered(draws, {"Latency": 1.0}),
    "Preble": lambda draws: ExploitExplore(),
    "NetKv": lambda draws: NetworkAware(),
}
"""By name: what makes the rule for one run."""

PREFILL_ROUTERS: Final[Mapping[str, Callable[[], PrefillRouter]]] = {
    "Earliest": EarliestPrefill,
    "RoundRobin": RoundRobinPrefill,
    "Conductor": Conductor,
    "RefusingConductor": lambda: Conductor(ConductorSettings(refuses=True)),
}
"""For the instances that compute prompts, likewise."""
