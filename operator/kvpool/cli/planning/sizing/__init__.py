"""`kvpool size`: the options file, what it asks the planner, and how the answer is shown."""
