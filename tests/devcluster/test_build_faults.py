"""A build that this machine cannot do ends in one message that says what to do."""

from __future__ import annotations

import errno
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devcluster import build, recipe
from devcluster.build_faults import told_of
from devcluster.cache import CHECKOUT
from devcluster.images import archive, base
from devcluster.images.command import run_shown
from devcluster.toolchain import BuildError
from tests.harness.waiting import wait_until

NAMED = "or name an image that can be had here in KVPOOL_BASE"
MIRROR = "http://mirror.invalid/debian"
FILLS = 'mkdir -p "$4/etc" && echo bookworm >"$4/etc/debian_version"'


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KVPOOL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KVPOOL_BASE", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def programs(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder before all others on PATH, with an apt that has a mirror; root and Debian for the builder."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(base, "_release", lambda: "bookworm")
    program(folder, "apt-get", f"echo {MIRROR} bookworm")
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


class NoStore:
    """A buildah that has nothing yet."""

    def has(self, _: str) -> bool:
        return False

    def build(self, *_: object, **__: object) -> None:
        pass


def fault(cache: Path) -> str:
    """How the base image cannot be made; what was begun is gone afterwards."""
    with pytest.raises(BuildError) as raised:
        base.base_image(NoStore())  # type: ignore[arg-type]  # stands in for buildah, which needs root
    assert not list((cache / "devcluster").glob("*.partial"))
    assert {path.name for path in cache.iterdir()} <= {"devcluster"}
    return str(raised.value)


def test_a_base_image_is_made_of_what_debootstrap_left(programs: Path, own_cache: Path) -> None:
    program(programs, "debootstrap", FILLS)
    assert base.base_image(NoStore()).startswith("localhost/kvpool-base:")  # type: ignore[arg-type]  # as above
    [folder] = (own_cache / "devcluster").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["Dockerfile", "root.tar"]
    listed = subprocess.run(
        ["tar", "-tf", folder / "root.tar"], capture_output=True, text=True, timeout=30, check=True
    )
    assert "./etc/debian_version" in listed.stdout.split()


def test_without_debootstrap_it_says_what_to_install(
    programs: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    assert fault(own_cache) == (
        f"the base image is made by Debian's package debootstrap, as root: install it, {NAMED}"
    )


def test_a_debootstrap_without_network_is_told_with_its_last_words_and_the_mirror(
    programs: Path, own_cache: Path
) -> None:
    log = 'mkdir -p "$4/debootstrap" && echo "unable to resolve" >"$4/debootstrap/debootstrap.log"'
    program(programs, "debootstrap", f'{log}; echo "E: Failed getting release file" >&2; exit 1')
    assert fault(own_cache).splitlines() == [
        "making the base image: `debootstrap` ended with 1",
        "E: Failed getting release file",
        "unable to resolve",
        f"`apt-get update` says whether {MIRROR} can be reached; {NAMED}",
    ]


def test_a_debootstrap_that_never_ends_is_ended_with_all_that_it_started(
    programs: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "MAKE_SECONDS", 0.5)
    child = tmp_path / "child"
    program(programs, "debootstrap", f"sleep 600 & echo $! >{child}; wait")
    begun = time.monotonic()
    text = fault(own_cache)
    assert time.monotonic() - begun < 60
    assert text.startswith("making the base image: `debootstrap` was not done within 0.5 s\n")
    assert MIRROR in text
    gone = Path("/proc", child.read_text().strip(), "cmdline")
    wait_until(lambda: not gone.exists() or not gone.read_text(), 10, "what it started ended")


def test_an_archive_that_cannot_be_written_is_told_with_the_words_of_tar(
    programs: Path, own_cache: Path
) -> None:
    program(programs, "debootstrap", FILLS)
    program(programs, "tar", 'echo "tar: write error: No space left on device" >&2; exit 2')
    text = fault(own_cache)
    assert text.startswith("the base image: tar ended with 2: tar: write error: No space left on device")
    assert "is there room for" in text


def test_a_machine_that_is_no_debian_or_has_no_apt_is_told(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_file() -> dict[str, str]:
        raise OSError(errno.ENOENT, "Unable to read files /etc/os-release")

    monkeypatch.setattr(platform, "freedesktop_os_release", no_file)
    with pytest.raises(
        BuildError, match=r"on Debian alone: name an image that can be had here in KVPOOL_BASE"
    ):
        base.base_image(NoStore())  # type: ignore[arg-type]  # as above
    monkeypatch.setenv("PATH", str(own_cache))
    with pytest.raises(BuildError, match=r"^asking apt: `apt-get` is not on PATH: install it$"):
        base._mirror("bookworm")


def test_an_apt_without_a_mirror_says_so(programs: Path, own_cache: Path) -> None:
    program(programs, "debootstrap", FILLS)
    program(programs, "apt-get", "exit 100")
    assert fault(own_cache) == f"apt has no source for bookworm: `apt-get update` says why; {NAMED}"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "free some room, or name a folder with more of it",
        ),
        (
            PermissionError(errno.EACCES, "Permission denied", "/c"),
            "name a folder that you may write to in KVPOOL_CACHE",
        ),
        (FileNotFoundError(errno.ENOENT, "No such file", "tar"), "`tar` is not on PATH: install it"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/c/x"), "No such file: '/c/x'"),
        (subprocess.TimeoutExpired(["tar", "-cf"], 300), "`tar` was not done within 300 s"),
    ],
)
def test_what_befalls_any_builder_is_told(error: Exception, words: str) -> None:
    with pytest.raises(BuildError) as raised, told_of("the images"):
        raise error
    assert str(raised.value).startswith("the images: ")
    assert words in str(raised.value)


def test_every_builder_tells_of_a_cache_that_cannot_be_written(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.write_text("a file where the folder should be")
    with pytest.raises(BuildError, match=r"^building pause: .*File exists"):
        build.build(recipe.PAUSE)
    monkeypatch.setattr(archive, "build", lambda _: None)
    monkeypatch.delenv(archive.VARIABLE, raising=False)
    with pytest.raises(BuildError, match=r"^the images: .*File exists"):
        archive.archive()


def test_the_command_ends_with_one_message(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "devcluster.images"],
        cwd=CHECKOUT,
        env={**os.environ, "KVPOOL_CACHE": str(tmp_path / "cache"), archive.VARIABLE: ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(BuildError, match=r"^packing: `no-such-program` is not on PATH: install it$"):
        run_shown(["no-such-program"], "packing", 10)
