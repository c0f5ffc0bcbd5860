"""The base image: what `KVPOOL_BASE` names, else a Debian with Python, made here by debootstrap.

The image is made once for each release, machine and list of packages, and lies in the cache.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from devcluster.build_faults import told_of
from devcluster.cache import cache_folder, keyed_folder, move_into_place
from devcluster.images.buildah import Buildah
from devcluster.images.command import run_shown
from devcluster.toolchain import BuildError

PACKAGES = ("ca-certificates", "python3", "python3-venv")
NOT_IN_THE_IMAGE = ("./dev/*", "./proc/*", "./sys/*", "./var/cache/apt/*", "./var/lib/apt/lists/*")
ASK_SECONDS = 60
MAKE_SECONDS = 900
OTHERWISE = "name an image that can be had here in KVPOOL_BASE"


def base_image(buildah: Buildah) -> str:
    """Name of an image that `FROM` can use. Raises BuildError."""
    named = os.environ.get("KVPOOL_BASE")
    if named:
        return named
    release = _release()
    folder = keyed_folder("base-image", [], [release, *PACKAGES, *NOT_IN_THE_IMAGE])
    if not folder.exists():
        _make(folder, release)
    name = f"localhost/kvpool-base:{folder.name.rpartition('-')[2]}"
    if not buildah.has(name):
        buildah.build(folder, folder / "Dockerfile", name=name, shown="the base image")
    return name


def _make(folder: Path, release: str) -> None:
    """Put the root file system as an archive, and the Dockerfile that takes it, into `folder`."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise BuildError(
            f"the base image is made by Debian's package debootstrap, as root: install it, or {OTHERWISE}"
        )
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with told_of("the base image"):
            partial.mkdir(parents=True)
            with tempfile.TemporaryDirectory(dir=cache_folder()) as scratch:
                root = Path(scratch) / "root"
                _fill(root, release)
                _pack(root, partial / "root.tar")
            (partial / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
            move_into_place(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # of a build that failed: it would only take room


def _fill(root: Path, release: str) -> None:
    """Put a Debian there. Raises BuildError with debootstrap's last words and what to do."""
    mirror = _mirror(release)
    command = [
        "debootstrap",
        "--variant=minbase",
        f"--include={','.join(PACKAGES)}",
        release,
        str(root),
        mirror,
    ]
    try:
        run_shown(command, "making the base image", MAKE_SECONDS)
    except BuildError as error:
        log = root / "debootstrap" / "debootstrap.log"
        said = log.read_text(errors="replace").strip().splitlines()[-1:] if log.is_file() else []
        advice = f"`apt-get update` says whether {mirror} can be reached; or {OTHERWISE}"
        raise BuildError("\n".join([str(error), *said, advice])) from error


def _pack(root: Path, target: Path) -> None:
    """Write the archive. Raises BuildError."""
    left_out = [f"--exclude={pattern}" for pattern in NOT_IN_THE_IMAGE]
    command = ["tar", "--numeric-owner", *left_out, "-C", str(root), "-cf", str(target), "."]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MAKE_SECONDS, check=False)
    if done.returncode != 0:
        said = done.stderr.strip()
        raise BuildError(
            f"the base image: tar ended with {done.returncode}: {said}: is there room for {target}?"
        )


def _release() -> str:
    """Code name of the Debian that this machine runs. Raises BuildError."""
    try:
        facts = platform.freedesktop_os_release()
    except OSError:  # there is no such file
        facts = {}
    if facts.get("ID") != "debian" or "VERSION_CODENAME" not in facts:
        raise BuildError(f"the base image is made on Debian alone: {OTHERWISE}")
    return facts["VERSION_CODENAME"]


def _mirror(release: str) -> str:
    """The address that apt fetches the release from. Raises BuildError."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]
    with told_of("asking apt"):
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
    for line in answer.stdout.splitlines():
        address, _, of = line.rpartition(" ")
        if of == release:
            return address
    raise BuildError(f"apt has no source for {release}: `apt-get update` says why; or {OTHERWISE}")
