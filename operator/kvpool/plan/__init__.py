"""Pure decisions, one idea a file: a Snapshot and a moment in, a Plan with reasons out."""
