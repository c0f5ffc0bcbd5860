"""Images: one builder at a time, a layer store that stays small, and an archive that lacks nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.build_lock import only_builder
from devcluster.images.buildah import Buildah

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
