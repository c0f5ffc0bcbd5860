"""Which UDP source port sends a flow over which spine, and which spine it should take."""
