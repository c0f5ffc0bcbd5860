"""How long prefill, a decode step and a transfer take: one model, its constants and their sources."""
