"""Measurements that judge nothing: they print ratios of times that were taken in one run."""
