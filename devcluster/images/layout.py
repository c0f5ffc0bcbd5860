"""An OCI layout (a folder): the names of its images, and images that differ from others in one label alone.

Source: opencontainers.org, "Image Layout" and "Image Manifest", version 1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from devcluster.toolchain import BuildError

OCI_NAME = "org.opencontainers.image.ref.name"
CONTAINERD_NAME = "io.containerd.image.name"
VERSION_LABEL = "org.opencontainers.image.version"


def name_for_containerd(layout: Path, wanted: Collection[str]) -> None:
    """Give each image the name that containerd looks for. Raises BuildError when a wanted one is missing."""
    index = _read_index(layout)
    missing = set(wanted) - {entry["annotations"][OCI_NAME] for entry in index["manifests"]}
    if missing:
        raise BuildError(f"{layout} lacks {', '.join(sorted(missing))}, which was just written to it")
    for entry in index["manifests"]:
        entry["annotations"][CONTAINERD_NAME] = entry["annotations"][OCI_NAME]
    _write_index(layout, index)


def add_versions(layout: Path, names: Collection[str], tag: str) -> None:
    """Add images like the named ones, with another tag and that tag as a label: of other digests and ids.

    They share all layers.
    """
    index = _read_index(layout)
    for entry in list(index["manifests"]):
        name = entry["annotations"][OCI_NAME]
        if name in names:
            index["manifests"].append(_version(layout, entry, f"{name.rpartition(':')[0]}:{tag}", tag))
    _write_index(layout, index)


def _version(layout: Path, entry: dict[str, Any], name: str, label: str) -> dict[str, Any]:
    manifest = _read(layout, entry)
    configuration = _read(layout, manifest["config"])
    settings = configuration.setdefault("config", {})
    settings["Labels"] = {**(settings.get("Labels") or {}), VERSION_LABEL: label}
    manifest["config"] = _written(layout, manifest["config"], configuration)
    return {**_written(layout, entry, manifest), "annotations": {OCI_NAME: name, CONTAINERD_NAME: name}}


def _read(layout: Path, described: dict[str, Any]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((_blobs(layout) / _hash(described)).read_text())
    return content


def _written(layout: Path, like: dict[str, Any], content: dict[str, Any]) -> dict[str, Any]:
    """Write a blob and describe it as another one of its kind."""
    data = json.dumps(content).encode()
    described = {**like, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}
    (_blobs(layout) / _hash(described)).write_bytes(data)
    return described


def _hash(described: dict[str, Any]) -> str:
    return str(described["digest"]).removeprefix("sha256:")


def _blobs(layout: Path) -> Path:
    return layout / "blobs" / "sha256"


def _read_index(layout: Path) -> dict[str, Any]:
    index: dict[str, Any] = json.loads((layout / "index.json").read_text())
    return index


def _write_index(layout: Path, index: dict[str, Any]) -> None:
    (layout / "index.json").write_text(json.dumps(index))
