"""Images unpacked once into the cache, and lent to the disk of each node."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from devcluster import in_use
from devcluster.cache import KEY_LENGTH, cache_folder, move_into_place
from devcluster.nodes import archives, runtime
from devcluster.nodes.layout import MEMORY_FOLDER, RUN_FOLDER
from devcluster.nodes.member import Member

PREFIX = "layers-"
KEPT = 3  # stores of other sets of images that stay in the cache
STOP_SECONDS = 20.0
SNAPSHOTS = "snapshots"  # the folder in which each folder is one unpacked layer
DATABASE = ".db"


class LayerStore:
    """What containerd makes of a set of image archives, in a folder keyed by their content.

    A node gets links to the layers, which nobody writes to, and databases of its own. From `open` to `close`
    the store is in use and is not removed from the cache.
    """

    def __init__(self, images: Sequence[Path], pause: str) -> None:
        self.images = list(images)
        self._pause = pause
        digest = hashlib.sha256()
        for image in self.images:
            digest.update(archives.read_index(image))
        self.folder = _parent() / f"{PREFIX}{digest.hexdigest()[:KEY_LENGTH]}"
        self._use: TextIO | None = None

    def open(self) -> None:
        """Unpack the archives unless the cache has them. Raises ProcessError."""
        if not self.images:
            return
        with _locked():
            self._use = in_use.use(self.folder)
            if self.folder.exists():
                return
            with tempfile.TemporaryDirectory(prefix="unpacking-", dir=_parent()) as scratch:
                self._import(Path(scratch))
            others = [path for path in _parent().glob(f"{PREFIX}*") if path.is_dir() and path != self.folder]
            in_use.forget(others, KEPT)

    def close(self) -> None:
        """Say that no node uses it any more; one that was never opened is fine."""
        if self._use is not None:
            self._use.close()
            self._use = None

    def _import(self, scratch: Path) -> None:
        """Import in a member without network, whose /var/lib becomes the store."""
        disk = scratch / "disk"
        disk.mkdir(parents=True)
        member = Member("unpack", scratch)
        member.start(
            memory={RUN_FOLDER: "mode=755", MEMORY_FOLDER: "mode=1777"}, binds={"/var/lib": str(disk)}
        )
        try:
            containerd = runtime.start(member, self._pause, processes=False)
            for image in self.images:
                runtime.import_image(member, image, processes=False)
            containerd.terminate(STOP_SECONDS)
        finally:
            member.kill()
        move_into_place(disk / Path(runtime.ROOT).name, self.folder)

    def lend_to(self, disk: Path) -> None:
        """Put the images into a node's /var/lib, unless it has some already."""
        target = disk / Path(runtime.ROOT).name
        if not self.images or target.exists():
            return
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        _lend(self.folder, partial)
        partial.rename(target)


def _lend(source: Path, target: Path) -> None:
    target.mkdir(mode=source.stat().st_mode)
    for entry in source.iterdir():
        lent = target / entry.name
        if entry.suffix == DATABASE:  # the only files that are ever written to again
            shutil.copy2(entry, lent)
        elif entry.is_dir() and source.name != SNAPSHOTS:
            _lend(entry, lent)
        else:
            lent.symlink_to(entry)


def _parent() -> Path:
    return cache_folder() / "devcluster"


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Be the only one who makes or removes stores."""
    _parent().mkdir(parents=True, exist_ok=True)
    with (_parent() / f"{PREFIX}lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
