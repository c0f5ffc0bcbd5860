"""Which prefixes an instance holds, in which tier, and what has to go when room is needed."""
