"""Where built things live: `$KVPOOL_CACHE`, else `.cache/` of the checkout, in folders named by a key."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
MODULES = CHECKOUT / "devcluster"
KEY_LENGTH = 16


def cache_folder() -> Path:
    """The cache folder, created when missing."""
    folder = Path(os.environ.get("KVPOOL_CACHE") or CHECKOUT / ".cache").expanduser().resolve()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def keyed_folder(name: str, files: Sequence[Path], recipe: Sequence[str]) -> Path:
    """`<cache>/devcluster/<name>-<key>`; the key changes with the files' bytes, the recipe or the machine."""
    digest = hashlib.sha256(platform.machine().encode())
    for file in files:
        digest.update(b"\0file\0" + file.read_bytes())
    for step in recipe:
        digest.update(b"\0step\0" + step.encode())
    return cache_folder() / "devcluster" / f"{name}-{digest.hexdigest()[:KEY_LENGTH]}"


def move_into_place(partial: Path, final: Path) -> None:
    """Rename a finished folder to its final name, so that nobody ever sees half of it."""
    if final.exists():
        shutil.rmtree(final)
    final.parent.mkdir(parents=True, exist_ok=True)
    partial.rename(final)
