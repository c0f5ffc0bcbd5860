"""Accelerators: one file a way to ask about them."""
