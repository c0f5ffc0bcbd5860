"""The simulator: the planner's own decisions, on a virtual clock. Integer nanoseconds; no input or output."""

from kvpool.sim.scenario import Scenario
from kvpool.sim.simulation import run

__all__ = ["Scenario", "run"]
