"""Before the sandbox, where the network is: find out what this machine can do, install, and build."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence

from demo import places
from demo.forms import Form, FormError, Machine
from devcluster import kind, recipe
from devcluster.build import build
from devcluster.cache import cache_folder
from devcluster.images import archive
from devcluster.kubectl import ClusterError
from devcluster.nodes import requirements

INSTALL_SECONDS = 900
BASE_VARIABLE = "KVPOOL_BASE"
ALWAYS = (recipe.HELM, recipe.GATEWAY_API, recipe.CONTROL_PLANE, recipe.TRAEFIK)
FOR_NODES = (recipe.NODE, recipe.COREDNS, recipe.PAUSE)


def look_at_machine() -> Machine:
    """Find out what `forms.choose` has to know."""
    makes_images = not _images_are_built()
    obstacle = requirements.obstacle() or requirements.unseen([places.FOLDER, cache_folder()])
    if not obstacle and makes_images and not (_is_debian() or os.environ.get(BASE_VARIABLE)):
        obstacle = f"images are made on Debian, or from an image that {BASE_VARIABLE} names"
    return Machine(
        obstacle=obstacle,
        absent=[*requirements.absent_packages(), *(_absent_for_images() if makes_images else [])],
        installs=os.geteuid() == 0 and _is_debian() and shutil.which("apt-get") is not None,
        has_kind=_has_kind(),
    )


def install(packages: Sequence[str]) -> None:
    """Install Debian packages. Raises FormError with apt's last words."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        command = ["apt-get", "-qq", *arguments]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise FormError(f"`{' '.join(command)}` ended with {done.returncode}: {last}")


def build_for(form: Form) -> None:
    """Build what the form runs, unless it is there. Raises BuildError."""
    for part in ALWAYS:
        build(part)
    if form is Form.NODES:
        for part in FOR_NODES:
            build(part)
        if not _images_are_built():
            archive.archive()


def _images_are_built() -> bool:
    try:
        archive.built()
    except recipe.NotBuiltError:
        return False
    return True


def _absent_for_images() -> list[str]:
    needed = ["buildah"] if os.environ.get(BASE_VARIABLE) else ["buildah", "debootstrap"]
    return [name for name in needed if shutil.which(name) is None]


def _is_debian() -> bool:
    try:
        return platform.freedesktop_os_release().get("ID") == "debian"
    except OSError:
        return False


def _has_kind() -> bool:
    try:
        kind.usable()
    except ClusterError:
        return False
    return True
