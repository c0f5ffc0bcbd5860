"""All images as one OCI archive in the cache, keyed by everything that goes into them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from devcluster import recipe
from devcluster.build import build
from devcluster.build_lock import only_builder
from devcluster.cache import CHECKOUT, keyed_folder, move_into_place
from devcluster.images.base import base_image
from devcluster.images.buildah import Buildah
from devcluster.toolchain import BuildError

TARGETS = ("operator", "agent", "keeper", "neighbours")
TAG = "dev"
NEXT_TAG = "next"
"""The same image under another tag: what an upgrade goes to."""
PAUSE = "localhost/pause:dev"
SOURCES = (
    ".dockerignore",
    "Dockerfile",
    "README.md",
    "agents",
    "demo/__init__.py",
    "demo/neighbours",
    "operator",
    "pyproject.toml",
    "requirements",
)
BORROWED = CHECKOUT / "build" / "images"
"""Compiled programs that the Dockerfile copies: the build context has to hold them."""
OCI_NAME = "org.opencontainers.image.ref.name"
CONTAINERD_NAME = "io.containerd.image.name"
TAR_SECONDS = 300
KEPT_ARCHIVES = 3
KEPT_IMAGES = 600
"""Of buildah, layers counted: about 60 builds, 6 GiB."""


def image_name(target: str, tag: str = TAG) -> str:
    """`localhost/kvpool-TARGET:TAG`."""
    return f"localhost/kvpool-{target}:{tag}"


def built() -> Path:
    """The archive of the images as the sources are now; `KVPOOL_IMAGES` names another.

    Raises NotBuiltError.
    """
    path = Path(os.environ.get("KVPOOL_IMAGES") or _folder() / "images.tar")
    if not path.exists():
        raise recipe.NotBuiltError(
            f"the images are not built yet ({path}): run `python -m devcluster.images`"
        )
    return path


def archive() -> Path:
    """Build what is missing and return the archive. Raises BuildError."""
    for part in (recipe.TRAEFIK, recipe.PAUSE):
        build(part)
    folder = _folder()
    if not folder.exists():
        with only_builder():
            if not folder.exists():  # by the one we waited for
                _make(folder)
    return folder / "images.tar"


def _folder() -> Path:
    programs = [str(part.folder) for part in (recipe.TRAEFIK, recipe.PAUSE)]
    base = os.environ.get("KVPOOL_BASE", "")
    return keyed_folder("images", sorted(_files()), [base, *TARGETS, TAG, NEXT_TAG, *programs])


def _files() -> Iterator[Path]:
    """Every file that may change an image."""
    for name in SOURCES:
        path = CHECKOUT / name
        inside = path.rglob("*") if path.is_dir() else [path]
        yield from (file for file in inside if file.is_file() and "__pycache__" not in file.parts)


def _make(folder: Path) -> None:
    buildah = Buildah()
    buildah.keep_within(KEPT_IMAGES)
    arguments = {"BASE": base_image(buildah)}
    _borrow()
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    layout = partial / "layout"
    layout.mkdir(parents=True)
    for target in TARGETS:
        name = image_name(target)
        buildah.build(
            CHECKOUT,
            CHECKOUT / "Dockerfile",
            name=name,
            shown=f"the image {name}",
            target=target,
            arguments=arguments,
        )
        buildah.push(name, layout)
    buildah.build(
        recipe.PAUSE.folder / "bin",
        recipe.PAUSE.module / "Dockerfile",
        name=PAUSE,
        shown=f"the image {PAUSE}",
    )
    buildah.push(PAUSE, layout)
    _name_for_containerd(layout / "index.json")
    _pack(layout, partial / "images.tar")
    shutil.rmtree(layout)
    move_into_place(partial, folder)
    _forget_all_but_newest(folder.parent)


def _forget_all_but_newest(parent: Path) -> None:
    """Others may run with an older archive, so that some are kept."""
    archives = [path for path in parent.glob("images-*") if not path.name.endswith(".partial")]
    for older in sorted(archives, key=lambda path: path.stat().st_mtime)[:-KEPT_ARCHIVES]:
        shutil.rmtree(older, ignore_errors=True)


def _borrow() -> None:
    """Put compiled programs where the build context has them."""
    shutil.rmtree(BORROWED, ignore_errors=True)
    BORROWED.mkdir(parents=True)
    shutil.copy2(recipe.binary("traefik"), BORROWED / "traefik")


def _name_for_containerd(index: Path) -> None:
    """Give every image the name that containerd looks for, and the product's images their second tag."""
    content = json.loads(index.read_text())
    manifests = content["manifests"]
    missing = {*map(image_name, TARGETS), PAUSE} - {
        manifest["annotations"][OCI_NAME] for manifest in manifests
    }
    if missing:
        raise BuildError(f"{index.parent} lacks {', '.join(sorted(missing))}, which was just written to it")
    for manifest in list(manifests):
        name = manifest["annotations"][OCI_NAME]
        manifest["annotations"][CONTAINERD_NAME] = name
        if name != PAUSE:
            again = {**manifest, "annotations": {CONTAINERD_NAME: name.replace(f":{TAG}", f":{NEXT_TAG}")}}
            manifests.append(again)
    index.write_text(json.dumps(content))


def _pack(layout: Path, target: Path) -> None:
    command = ["tar", "-C", str(layout), "-cf", str(target), "oci-layout", "index.json", "blobs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TAR_SECONDS, check=False)
    if done.returncode != 0:
        raise BuildError(f"tar of {layout}: {done.stderr.strip()}")
