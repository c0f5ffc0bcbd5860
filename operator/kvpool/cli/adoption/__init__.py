"""From an existing deployment's objects to manifests that only look at it; pure."""
