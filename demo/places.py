"""Where the demonstration keeps what it makes: everything below build/demo of the checkout."""

from __future__ import annotations

from devcluster.cache import CHECKOUT

FOLDER = CHECKOUT / "build" / "demo"
LOCK = FOLDER.with_suffix(".lock")
"""Held by the demonstration that runs in this checkout."""
PIDFILE = FOLDER / "sandbox.pid"
"""Names the sandbox of a demonstration that was left running."""
KEPT = FOLDER / "kept"
"""There once the demonstration is over and left running; holds its exit status."""
OUTPUT = FOLDER / "output.log"
SUMMARY = FOLDER / "summary.json"
LOGS = FOLDER / "logs"
CONTROL_PLANE = FOLDER / "control-plane"
NODES = FOLDER / "nodes"
"""Of the cluster of real nodes: the control plane, and each node's disk."""
KUBECONFIG = FOLDER / "kubeconfig"
"""The administrator's, for people and their commands."""
SAMPLES = CHECKOUT / "samples" / "demo"
CHART = CHECKOUT / "charts" / "kvpool"
