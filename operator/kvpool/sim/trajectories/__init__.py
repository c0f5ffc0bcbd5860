"""Programs of many turns on an engine with a few slots and a pool of memory."""
