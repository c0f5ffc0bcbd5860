"""The simulator: the planner's own decisions, on a virtual clock. Integer nanoseconds; no input or output."""
