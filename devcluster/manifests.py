"""CRD manifests: ours, and those of Gateway API; read, applied, and waited for."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import yaml

from devcluster.cache import CHECKOUT
from devcluster.rest import Api, JsonObject

CRDS_FOLDER = CHECKOUT / "crds"
ESTABLISHED_SECONDS = 20.0


def read_crds(folder: Path) -> dict[Path, list[JsonObject]]:
    """The files of a folder (not of its sub-folders) that hold CustomResourceDefinitions, and those."""
    found: dict[Path, list[JsonObject]] = {}
    for file in sorted(folder.glob("*.yaml")):
        documents = [document for document in yaml.safe_load_all(file.read_text()) if document]
        crds = [document for document in documents if document["kind"] == "CustomResourceDefinition"]
        if crds:
            found[file] = crds
    return found


def install_crds(api: Api, folder: Path) -> None:
    """Apply the CRDs of a folder and wait until all are Established. Raises ApiError or TimeoutError."""
    crds = [crd for found in read_crds(folder).values() for crd in found]
    for crd in crds:
        api.apply(crd, field_manager="devcluster")
    for crd in crds:
        name = crd["metadata"]["name"]
        api.wait_until(partial(_established, api, name), ESTABLISHED_SECONDS, f"CRD {name}")


def _established(api: Api, name: str) -> bool:
    crd = api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    conditions = crd.get("status", {}).get("conditions", [])
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
