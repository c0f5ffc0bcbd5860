"""Images: one builder at a time, on the base that is named, in a layer store that stays small.

Their archive lacks nothing, and stays while it is used.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from devcluster import in_use
from devcluster.build_lock import only_builder
from devcluster.cache import CHECKOUT
from devcluster.images import archive, layout
from devcluster.images.base import base_image
from devcluster.images.buildah import Buildah
from devcluster.toolchain import BuildError
from tests.devcluster.tiny_image import write_image

IMAGE = "localhost/some/image:dev"

needs_buildah = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("buildah") is None, reason="images are built by buildah, as root"
)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KVPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_second_builder_waits_for_the_first_and_says_so(own_cache: Path) -> None:
    program = "from devcluster.build_lock import only_builder\nwith only_builder(): print('built')"
    with only_builder():
        second = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert second.stderr is not None
        assert "waiting for it" in second.stderr.readline()
        assert second.poll() is None
    assert second.communicate(timeout=30)[0] == "built\n"


@needs_buildah
def test_a_layer_store_that_has_grown_too_large_is_emptied_and_builds_again(
    own_cache: Path, tmp_path: Path
) -> None:
    dockerfile = tmp_path / "Dockerfile"
    buildah = Buildah()

    def build(name: str) -> None:
        dockerfile.write_text(f"FROM scratch\nLABEL made={name}\n")
        buildah.build(tmp_path, dockerfile, name=f"localhost/{name}:dev", shown=name)

    build("one")
    build("two")
    buildah.keep_within(10)
    assert buildah.has("localhost/one:dev")
    buildah.keep_within(1)
    assert not buildah.has("localhost/one:dev")
    build("one")
    assert buildah.has("localhost/one:dev")


@needs_buildah
@pytest.mark.parametrize("by_digest", [False, True], ids=["tag", "digest"])
def test_a_base_that_is_named_is_what_images_are_built_from(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_digest: bool
) -> None:
    buildah = Buildah()
    named = "localhost/somebodys-base:1"
    dockerfile = tmp_path / "Dockerfile"
    dockerfile.write_text("FROM scratch\nLABEL of=somebody\n")
    buildah.build(tmp_path, dockerfile, name=named, shown="the base")
    if by_digest:
        digest = digest_of(own_cache, named)
        dockerfile.write_text("FROM scratch\nLABEL of=another\n")
        buildah.build(tmp_path, dockerfile, name=named, shown="what the tag stands for later")
        assert digest_of(own_cache, named) != digest
        named = f"localhost/somebodys-base@{digest}"
    monkeypatch.setenv("KVPOOL_BASE", named)
    dockerfile.write_text("ARG BASE=no-such-image\nFROM ${BASE} AS runtime\nLABEL also=mine\n")
    base = {"BASE": base_image(buildah)}
    buildah.build(tmp_path, dockerfile, name=IMAGE, shown="an image", target="runtime", arguments=base)
    buildah.push(IMAGE, tmp_path / "layout")
    labels = configuration(tmp_path / "layout", IMAGE)["config"]["Labels"]
    assert (labels["of"], labels["also"]) == ("somebody", "mine")


def digest_of(cache: Path, name: str) -> str:
    """What a tag stands for now."""
    store = cache / "devcluster" / "buildah"
    command = [
        "buildah",
        f"--root={store / 'root'}",
        f"--runroot={store / 'run'}",
        "--storage-driver=overlay",
    ]
    command += ["inspect", "--type=image", "--format={{.FromImageDigest}}", name]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()


def test_every_image_of_the_dockerfile_begins_with_the_base() -> None:
    lines = (CHECKOUT / "Dockerfile").read_text().splitlines()
    stages = [re.fullmatch(r"FROM (\S+) AS (\S+)", line) for line in lines if line.startswith("FROM ")]
    found = [(stage[1], stage[2]) for stage in stages if stage is not None]
    assert len(found) == len(stages)
    assert {image for image, _ in found} - {name for _, name in found} == {"${BASE}"}
    assert set(archive.TARGETS) <= {name for _, name in found}


@pytest.fixture
def built_with(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The build arguments of each image, by its name; nothing is built, each image is a tiny one."""
    built: dict[str, Any] = {}

    class Recorded:
        def keep_within(self, _: int) -> None:
            pass

        def build(self, *_: object, name: str, arguments: object = None, **_how: object) -> None:
            built[name] = arguments

        def push(self, name: str, into: Path) -> None:
            unpacked(into, name)

    monkeypatch.setattr(archive, "Buildah", Recorded)
    monkeypatch.setattr(archive, "build", lambda _: None)
    monkeypatch.setattr(archive, "_borrow", lambda: None)
    monkeypatch.setattr(archive, "_in_use", {})
    monkeypatch.delenv(archive.VARIABLE, raising=False)
    monkeypatch.setenv("KVPOOL_BASE", "somebodys/base:1")
    return built


def test_the_images_of_the_product_are_built_with_the_base_that_is_named(built_with: dict[str, Any]) -> None:
    path = archive.archive()
    assert built_with.pop(archive.PAUSE) is None
    assert built_with == {
        archive.image_name(target): {"BASE": "somebodys/base:1"} for target in archive.TARGETS
    }
    assert archive.built() == path


def unpacked(into: Path, name: str) -> Path:
    """Add a tiny image to a layout."""
    into.mkdir(exist_ok=True)
    index = into / "index.json"
    before = json.loads(index.read_text())["manifests"] if index.exists() else []
    with tarfile.open(write_image(into / "image.tar", name, {"sh": Path(os.devnull)}, "sh")) as tar:
        tar.extractall(into, filter="data")
    (into / "image.tar").unlink()
    now = json.loads(index.read_text())
    index.write_text(json.dumps({**now, "manifests": [*before, *now["manifests"]]}))
    return into


def described(folder: Path, name: str) -> dict[str, Any]:
    """An image's entry in the index."""
    entries = json.loads((folder / "index.json").read_text())["manifests"]
    [entry] = [one for one in entries if one["annotations"][layout.OCI_NAME] == name]
    return dict(entry)


def blob(folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    data = (folder / "blobs" / str(entry["digest"]).replace(":", "/")).read_bytes()
    assert len(data) == entry["size"]
    return dict(json.loads(data))


def configuration(folder: Path, name: str) -> dict[str, Any]:
    return blob(folder, blob(folder, described(folder, name))["config"])


def test_an_archive_that_lacks_an_image_is_refused_and_the_image_is_named(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "layout", IMAGE)
    with pytest.raises(BuildError, match=r"layout lacks localhost/other:dev, which was just written"):
        layout.name_for_containerd(folder, [IMAGE, "localhost/other:dev"])
    layout.name_for_containerd(folder, [IMAGE])
    assert described(folder, IMAGE)["annotations"][layout.CONTAINERD_NAME] == IMAGE


def test_the_next_version_of_an_image_is_another_image_of_the_same_layers(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "layout", IMAGE)
    unpacked(folder, "localhost/other:dev")
    layout.add_versions(folder, [IMAGE], "next")
    old, new = (described(folder, name) for name in (IMAGE, "localhost/some/image:next"))
    assert new["annotations"][layout.CONTAINERD_NAME] == "localhost/some/image:next"
    assert old["digest"] != new["digest"]
    assert blob(folder, old)["layers"] == blob(folder, new)["layers"]
    assert blob(folder, old)["config"]["digest"] != blob(folder, new)["config"]["digest"]
    changed = configuration(folder, "localhost/some/image:next")
    assert changed["config"].pop("Labels") == {layout.VERSION_LABEL: "next"}
    assert changed == configuration(folder, IMAGE)
    assert len(json.loads((folder / "index.json").read_text())["manifests"]) == 3


USER = """
import sys
from devcluster.images import archive
print(archive.built(), flush=True)
sys.stdin.read()
"""


def test_an_archive_stays_while_a_process_uses_it_and_goes_after_it(own_cache: Path) -> None:
    folders = [own_cache / "devcluster" / f"images-{number}" for number in range(3)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / archive.FILE).touch()
        os.utime(folder, (number, number))
    user = subprocess.Popen(
        [sys.executable, "-c", USER],
        env={**os.environ, archive.VARIABLE: str(folders[0] / archive.FILE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    assert user.stdout.readline().strip() == str(folders[0] / archive.FILE)
    in_use.forget(folders, 0)
    assert [folder.exists() for folder in folders] == [True, False, False]
    user.communicate(timeout=30)
    in_use.forget([folders[0]], 0)
    assert not list((own_cache / "devcluster").iterdir())


def test_an_archive_in_the_cache_of_another_user_is_found_and_left_alone(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = own_cache / "devcluster" / "images-0"
    folder.mkdir(parents=True)
    (folder / archive.FILE).touch()
    monkeypatch.setenv(archive.VARIABLE, str(folder / archive.FILE))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert archive.built() == folder / archive.FILE
    assert list((own_cache / "devcluster").iterdir()) == [folder]


def test_of_archives_that_nobody_uses_those_used_last_are_kept(own_cache: Path) -> None:
    folders = [own_cache / "devcluster" / f"images-{number}" for number in range(3)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        os.utime(folder, (number, number))
    in_use.use(folders[0]).close()
    in_use.forget(folders, 1)
    assert [folder.exists() for folder in folders] == [True, False, False]


def test_an_archive_that_is_named_is_used_and_nothing_is_built(
    tmp_path: Path, built_with: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    named = tmp_path / "other.tar"
    monkeypatch.setenv(archive.VARIABLE, str(named))
    with pytest.raises(BuildError, match=r"KVPOOL_IMAGES names .*other.tar, and there is no such file"):
        archive.archive()
    named.touch()
    assert archive.archive() == named
    assert built_with == {}
