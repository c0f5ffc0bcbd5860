"""All images as one OCI archive in the cache, keyed by everything that goes into them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from devcluster import in_use, recipe
from devcluster.build import build
from devcluster.build_faults import told_of
from devcluster.build_lock import only_builder
from devcluster.cache import CHECKOUT, cache_folder, keyed_folder, move_into_place
from devcluster.images import layout as oci
from devcluster.images.base import base_image
from devcluster.images.buildah import Buildah
from devcluster.toolchain import BuildError

TARGETS = ("operator", "agent", "keeper", "neighbours")
TAG = "dev"
NEXT_TAG = "next"
"""Images of the same content that are others all the same: what an upgrade goes to."""
PAUSE = "localhost/pause:dev"
FILE = "images.tar"
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
MAKERS = (Path(oci.__file__),)
"""What makes images out of images."""
BORROWED = CHECKOUT / "build" / "images"
"""Compiled programs that the Dockerfile copies: the build context has to hold them."""
VARIABLE = "KVPOOL_IMAGES"
TAR_SECONDS = 300
KEPT_ARCHIVES = 3
"""In the cache, if nobody uses more of them."""
KEPT_IMAGES = 600
"""Of buildah, layers counted: about 60 builds, 6 GiB."""
_in_use: dict[Path, TextIO] = {}
"""By this process, until it ends: no other one may remove these folders meanwhile."""


def image_name(target: str, tag: str = TAG) -> str:
    """`localhost/kvpool-TARGET:TAG`."""
    return f"localhost/kvpool-{target}:{tag}"


def built() -> Path:
    """The archive of the images as the sources are now; `KVPOOL_IMAGES` names another.

    It stays until this process ends. Raises NotBuiltError.
    """
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else _folder() / FILE
    if _kept(path):
        return path
    if named:
        raise recipe.NotBuiltError(f"{VARIABLE} names {path}, and there is no such file")
    raise recipe.NotBuiltError(f"the images are not built yet ({path}): run `python -m devcluster.images`")


def archive() -> Path:
    """Build what is missing and return the archive; nothing when `KVPOOL_IMAGES` names one.

    It stays until this process ends. Raises BuildError.
    """
    if os.environ.get(VARIABLE):
        try:
            return built()
        except recipe.NotBuiltError as error:
            raise BuildError(str(error)) from error
    for part in (recipe.TRAEFIK, recipe.PAUSE):
        build(part)
    with told_of("the images"):
        folder = _folder()
        path = folder / FILE
        if not _kept(path):
            with only_builder():
                if not _kept(path):  # nor made by the one we waited for
                    _make(folder)
                    _kept(path)
    return path


def _kept(path: Path) -> bool:
    """Whether an archive is there. One of the cache is in use from now on, unless that is another user's."""
    folder = path.resolve().parent
    ours = folder.parent == _parent() and os.access(_parent(), os.W_OK)
    if ours and path.is_file() and folder not in _in_use:
        _in_use[folder] = in_use.use(folder)
    return path.is_file()


def _parent() -> Path:
    return cache_folder() / "devcluster"


def _folder() -> Path:
    programs = [str(part.folder) for part in (recipe.TRAEFIK, recipe.PAUSE)]
    base = os.environ.get("KVPOOL_BASE", "")
    return keyed_folder("images", [*sorted(_files()), *MAKERS], [base, *TARGETS, TAG, NEXT_TAG, *programs])


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
    for left in _parent().glob("images-*.partial"):  # by builders that were ended: there is no other one now
        shutil.rmtree(left)
    partial = folder.with_name(folder.name + ".partial")
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
    names = [image_name(target) for target in TARGETS]
    oci.name_for_containerd(layout, [*names, PAUSE])
    oci.add_versions(layout, names, NEXT_TAG)
    _pack(layout, partial / FILE)
    shutil.rmtree(layout)
    move_into_place(partial, folder)
    others = [path for path in _parent().glob("images-*") if path.is_dir() and path != folder]
    in_use.forget(others, KEPT_ARCHIVES - 1)


def _borrow() -> None:
    """Put compiled programs where the build context has them."""
    shutil.rmtree(BORROWED, ignore_errors=True)
    BORROWED.mkdir(parents=True)
    shutil.copy2(recipe.binary("traefik"), BORROWED / "traefik")


def _pack(layout: Path, target: Path) -> None:
    command = ["tar", "-C", str(layout), "-cf", str(target), "oci-layout", "index.json", "blobs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TAR_SECONDS, check=False)
    if done.returncode != 0:
        raise BuildError(f"tar of {layout}: {done.stderr.strip()}")
