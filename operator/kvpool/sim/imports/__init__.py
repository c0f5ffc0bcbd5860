"""Logs of one's own servers made workloads: lengths, times and salted block ids, no text."""
