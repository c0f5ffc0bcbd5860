"""Image archives are known by their index, however the tar file spells its name, and by the names in it."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from devcluster.nodes.archives import base_name, read_index
from devcluster.process import ProcessError


def archive(path: Path, **files: object) -> Path:
    """A tar file of JSON files; `_` at the start of a name stands for `./`."""
    with tarfile.open(path, "w") as tar:
        for name, content in files.items():
            data = json.dumps(content).encode()
            entry = tarfile.TarInfo(name.replace("_", "./") + ".json")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def index(**annotations: str) -> dict[str, object]:
    names = {"name": "io.containerd.image.name", "reference": "org.opencontainers.image.ref.name"}
    return {"manifests": [{"annotations": {names[key]: value for key, value in annotations.items()}}]}


@pytest.mark.parametrize("name", ["index", "_index", "manifest", "_manifest"])
def test_the_index_is_found_however_it_is_spelled(tmp_path: Path, name: str) -> None:
    assert read_index(archive(tmp_path / "a.tar", other="no", **{name: {"here": 1}})) == b'{"here": 1}'


def test_a_file_that_is_no_image_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "text.tar").write_text("no tar file at all")
    for path in (archive(tmp_path / "empty.tar"), tmp_path / "text.tar", tmp_path / "missing.tar"):
        with pytest.raises(ProcessError, match=f"{path.name} is no image archive"):
            read_index(path)


def test_a_whole_name_where_a_tag_is_expected_is_taken_for_the_name(tmp_path: Path) -> None:
    whole = archive(tmp_path / "whole.tar", index=index(reference="localhost:5000/some/image:dev"))
    assert base_name(whole) == "localhost:5000/some/image"
    for number, known in enumerate([index(reference="dev"), index(name="x/y:dev", reference="x/y:dev"), []]):
        assert base_name(archive(tmp_path / f"{number}.tar", index=known)) == ""
