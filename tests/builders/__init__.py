"""Builders of worlds, objects and observations for tests of pure decisions."""
