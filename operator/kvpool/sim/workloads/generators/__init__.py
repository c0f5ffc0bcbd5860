"""Workloads that are made, not read: each file one kind, with its parameters and its seed."""
