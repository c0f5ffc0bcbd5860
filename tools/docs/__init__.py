"""Writes the reference pages that are made from code: fields and metrics."""
