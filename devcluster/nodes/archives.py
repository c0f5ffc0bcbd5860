"""Image archives (OCI or Docker tar files): their index, which names the content, and the images' names."""

from __future__ import annotations

import json
import posixpath
import tarfile
from pathlib import Path

from devcluster.process import ProcessError

INDICES = ("index.json", "manifest.json")  # of OCI and of Docker archives
NAME = "io.containerd.image.name"
REFERENCE = "org.opencontainers.image.ref.name"


def read_index(archive: Path) -> bytes:
    """The archive's index: it holds the digests of all the rest. Raises ProcessError when there is none."""
    try:
        with tarfile.open(archive) as tar:
            found = {posixpath.normpath(entry.name): entry for entry in tar if entry.isfile()}
            for wanted in INDICES:
                content = tar.extractfile(found[wanted]) if wanted in found else None
                if content is not None:
                    return content.read()
    except (OSError, tarfile.TarError) as error:
        raise ProcessError(f"{archive} is no image archive: {error}") from error
    raise ProcessError(f"{archive} is no image archive: it has neither of {', '.join(INDICES)}")


def base_name(archive: Path) -> str:
    """The name without its tag, of an OCI archive that gives whole names where only tags are expected.

    Empty for all others: their names are taken as they are.
    """
    index = json.loads(read_index(archive))
    if not isinstance(index, dict):
        return ""
    for manifest in index.get("manifests", []):
        notes = manifest.get("annotations", {})
        reference = notes.get(REFERENCE, "")
        if NAME not in notes and "/" in reference:
            return str(reference).rpartition(":")[0]
    return ""
