"""Images unpacked once into the cache, and put into each node's disk as hard links."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from devcluster.cache import KEY_LENGTH, cache_folder, move_into_place
from devcluster.nodes import archives, runtime
from devcluster.nodes.layout import MEMORY_FOLDER, RUN_FOLDER
from devcluster.nodes.member import Member
from devcluster.process import ProcessError

PREFIX = "layers-"
KEPT = 3  # stores of other sets of images that stay in the cache
STOP_SECONDS = 20.0
COPY_SECONDS = 300.0


class LayerStore:
    """What containerd makes of a set of image archives, in a folder keyed by their content."""

    def __init__(self, images: Sequence[Path], pause: str) -> None:
        self.images = list(images)
        self._pause = pause
        digest = hashlib.sha256()
        for image in self.images:
            digest.update(archives.read_index(image))
        self.folder = _parent() / f"{PREFIX}{digest.hexdigest()[:KEY_LENGTH]}"

    def unpack(self) -> None:
        """Unpack the archives unless the cache has them. Raises ProcessError."""
        if not self.images:
            return
        with _locked(fcntl.LOCK_EX):
            if self.folder.exists():
                self.folder.touch()  # lately used
                return
            with tempfile.TemporaryDirectory(prefix="unpacking-", dir=_parent()) as scratch:
                self._import(Path(scratch))
            _forget_old(self.folder)

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

    def copy_to(self, disk: Path) -> None:
        """Put the images into a node's /var/lib, unless it has some already. Raises ProcessError."""
        target = disk / Path(runtime.ROOT).name
        if not self.images or target.exists():
            return
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        with _locked(fcntl.LOCK_SH):
            _copy(self.folder, partial)
        for database in partial.glob("*/*.db"):  # the only files that are ever written to again
            own = database.with_suffix(".own")
            shutil.copy2(database, own)
            own.rename(database)
        partial.rename(target)


def _copy(source: Path, target: Path) -> None:
    """Hard links where the file system is the same, else copies."""
    for how in ("--link", "--reflink=auto"):
        shutil.rmtree(target, ignore_errors=True)
        result = subprocess.run(
            ["cp", "--archive", how, source, target],
            capture_output=True,
            text=True,
            timeout=COPY_SECONDS,
            check=False,
        )
        if result.returncode == 0:
            return
    raise ProcessError(f"{source} cannot be copied: {result.stderr.strip()}")


def _forget_old(used: Path) -> None:
    others = [folder for folder in _parent().glob(f"{PREFIX}*") if folder.is_dir() and folder != used]
    others.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in others[KEPT:]:
        shutil.rmtree(folder)


def _parent() -> Path:
    return cache_folder() / "devcluster"


@contextlib.contextmanager
def _locked(how: int) -> Iterator[None]:
    """Hold the lock of all stores: shared to read, exclusive to make or remove one."""
    _parent().mkdir(parents=True, exist_ok=True)
    with (_parent() / f"{PREFIX}lock").open("w") as lock:
        fcntl.flock(lock, how)
        yield
