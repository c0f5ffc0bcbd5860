"""Manifests that pages show are accepted by a real API server."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from devcluster.controlplane import ControlPlane
from kvpool.api.schema import API_VERSION
from tests.docs.pages import pages


def shown() -> list[tuple[str, dict[str, Any]]]:
    """Every manifest of our kinds in a fenced block, with the page it stands on."""
    found = []
    for page in pages():
        for fence in page.fences:
            if fence.language in ("yaml", "yml"):
                manifests = yaml.safe_load_all(fence.text)
                found += [(page.name, m) for m in manifests if isinstance(m, dict) and "apiVersion" in m]
    return [(name, manifest) for name, manifest in found if manifest["apiVersion"] == API_VERSION]


SHOWN = shown()


@pytest.mark.parametrize(
    ("page", "manifest"), SHOWN, ids=[f"{page}-{index}" for index, (page, _) in enumerate(SHOWN)]
)
def test_a_manifest_on_a_page_is_accepted(
    control_plane: ControlPlane, namespace: str, page: str, manifest: dict[str, Any]
) -> None:
    control_plane.install_crds()
    api = control_plane.admin
    if "namespace" in manifest["metadata"]:
        manifest = manifest | {"metadata": manifest["metadata"] | {"namespace": namespace}}
    path = api.path_of(manifest).rpartition("/")[0]
    answer = api.request("POST", path, manifest, {"fieldValidation": "Strict", "dryRun": "All"})
    assert answer.code == 201, f"{page}: {answer.message}"


def test_pages_show_manifests_of_every_kind_that_people_write() -> None:
    assert {manifest["kind"] for _, manifest in SHOWN} >= {"TierBudget", "KVPool", "PDGroup", "Supernode"}
