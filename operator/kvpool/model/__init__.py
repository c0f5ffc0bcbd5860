"""Frozen domain types: what is known (Snapshot), when (Instant), and what is decided (Decision)."""
