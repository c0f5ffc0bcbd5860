"""Verbs of `kvpool`: what is asked of the planner and the simulator, without a cluster."""
