"""An image of static programs alone, as an OCI archive: enough of one for the nodes' own tests."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

MEDIA = "application/vnd.oci.image."


def write_image(archive: Path, name: str, programs: Mapping[str, Path], entrypoint: str) -> Path:
    """Write an archive with one layer: `programs` by the name they have in `/`. Equal input, equal bytes."""
    layer = _tar({program: path.read_bytes() for program, path in programs.items()}, 0o755)
    configuration = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": [f"/{entrypoint}"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    blobs: dict[str, bytes] = {}

    def described(content: bytes, kind: str) -> dict[str, object]:
        blobs[f"blobs/sha256/{_digest(content).removeprefix('sha256:')}"] = content
        return {"mediaType": MEDIA + kind, "digest": _digest(content), "size": len(content)}

    manifest = {
        "schemaVersion": 2,
        "mediaType": MEDIA + "manifest.v1+json",
        "config": described(json.dumps(configuration).encode(), "config.v1+json"),
        "layers": [described(layer, "layer.v1.tar")],
    }
    entry = described(json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": name}
    index = {"schemaVersion": 2, "manifests": [entry]}
    files = {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": json.dumps(index).encode(),
        **blobs,
    }
    archive.write_bytes(_tar(files, 0o644))
    return archive


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _tar(files: Mapping[str, bytes], mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
