"""Pools of decode instances under one workload: which rule keeps more promises, and from which size."""
