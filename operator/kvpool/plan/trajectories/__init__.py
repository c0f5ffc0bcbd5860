"""Programs of many turns, as agents run them: which may hold memory, which wait, which leave."""
