"""Gives sample manifests a place of their own on a shared control plane."""

from __future__ import annotations

import copy
from typing import Any

from devcluster.rest import Api


def placed(manifest: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The manifest in ``namespace``; a cluster-scoped object carries the namespace in its name instead."""
    mine = copy.deepcopy(manifest)
    if "namespace" in mine["metadata"]:
        mine["metadata"]["namespace"] = namespace
    else:
        mine["metadata"]["name"] = f"{mine['metadata']['name']}.{namespace}"
    return mine


def create_with_status(api: Api, manifest: dict[str, Any]) -> dict[str, Any]:
    """Create an object, and its status too when the manifest has one; raises `ApiError`."""
    created = api.create(manifest)
    if "status" not in manifest:
        return created
    return api.call("PUT", api.path_of(manifest, "status"), created | {"status": manifest["status"]})
