"""Buildah: builds a Dockerfile as root, without a daemon and without a registry."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from devcluster.cache import cache_folder
from devcluster.images.command import run_shown
from devcluster.toolchain import BuildError

BUILD_SECONDS = 1800
ASK_SECONDS = 60
EMPTY_SECONDS = 300
OF_THE_MACHINE = (Path("/etc/pip.conf"), Path("/etc/ssl/certs/ca-certificates.crt"))
"""What a build borrows, so that pip and TLS work inside as they do outside; none of it is in an image."""


class Buildah:
    """One store of images and layers, in the cache."""

    def __init__(self) -> None:
        if os.geteuid() != 0 or shutil.which("buildah") is None:
            raise BuildError("images are built by Debian's package buildah, as root")
        store = cache_folder() / "devcluster" / "buildah"
        self._command = ["buildah", f"--root={store / 'root'}", f"--runroot={store / 'run'}"]
        self._command += ["--storage-driver=overlay"]

    def has(self, name: str) -> bool:
        """Whether an image of that name is there."""
        asked = [*self._command, "inspect", "--type=image", name]
        return subprocess.run(asked, capture_output=True, timeout=ASK_SECONDS, check=False).returncode == 0

    def keep_within(self, most_images: int) -> None:
        """Empty the store when it holds more images than that, layers counted: each build leaves its own.

        The next build starts from nothing; an archive that was made before is not touched.
        Raises BuildError.
        """
        asked = [*self._command, "images", "--all", "--quiet"]
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=ASK_SECONDS, check=False)
        if answer.returncode != 0:
            raise BuildError(f"buildah cannot read its store: {answer.stderr.strip()}")
        if len(answer.stdout.split()) > most_images:
            run_shown([*self._command, "rmi", "--all", "--force"], "emptying the layer cache", EMPTY_SECONDS)

    def build(
        self,
        context: Path,
        dockerfile: Path,
        *,
        name: str,
        shown: str,
        target: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        """Build a Dockerfile, or one target of it. Raises BuildError."""
        command = [*self._command, "bud", "--isolation=chroot", "--network=host", "--layers", f"--tag={name}"]
        command += [f"--file={dockerfile}"]
        command += [f"--volume={path}:{path}:ro" for path in OF_THE_MACHINE if path.exists()]
        command += [f"--build-arg={key}={value}" for key, value in (arguments or {}).items()]
        command += [f"--target={target}"] if target else []
        run_shown([*command, str(context)], f"building {shown}", BUILD_SECONDS, context)

    def push(self, name: str, layout: Path) -> None:
        """Add an image to an OCI layout (a folder); layers that are there already are not written again."""
        command = [*self._command, "push", "--disable-compression", name, f"oci:{layout}:{name}"]
        run_shown(command, f"writing {name}", BUILD_SECONDS)
