"""The operator's loops: gather a Snapshot, ask `kvpool.plan`, execute what it decides."""
