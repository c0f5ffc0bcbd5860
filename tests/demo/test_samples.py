"""The demonstration's samples are accepted as they are, by a real API server, and look only."""

from __future__ import annotations

from collections.abc import Callable

import yaml

from demo import places
from devcluster.controlplane import ControlPlane
from devcluster.rest import JsonObject


def manifests() -> list[JsonObject]:
    return [yaml.safe_load(file.read_text()) for file in sorted(places.SAMPLES.glob("*.yaml"))]


def test_every_sample_is_accepted_and_in_mode_observe(
    fresh_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = fresh_control_plane()
    plane.create_namespace("inference")
    kinds = []
    for manifest in manifests():
        made = plane.admin.create(manifest)
        assert made["spec"]["mode"] == "Observe"
        kinds.append(made["kind"])
    assert kinds == ["TierBudget", "Supernode", "KVPool", "PDGroup"]
