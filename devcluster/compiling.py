"""One `go build`, with its progress counted in packages."""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from devcluster.progress import Progress
from devcluster.recipe import GoCommand
from devcluster.toolchain import BuildError, go_environment

TICK_SECONDS = 0.5
CHUNK_BYTES = 65536


def compile_command(go: Path, module: Path, command: GoCommand, output: Path) -> None:
    """Compile into the folder `output`. Raises BuildError with the compiler's own words."""
    names = ", ".join(command.binaries)
    packages = _stale_packages(go, module, command, names)
    progress = Progress(f"compiling {names}", len(packages))
    target = output / command.output if command.output else f"{output}/"
    arguments = [
        "build",
        "-v",
        "-trimpath",
        "-ldflags",
        command.ldflags,
        "-o",
        str(target),
        *command.packages,
    ]
    compiled = 0
    complaints: list[str] = []

    def line_read(line: str | None) -> None:
        nonlocal compiled
        if line in packages:
            compiled += 1
        elif line is not None:
            complaints.append(line)
        note = "linking" if compiled >= len(packages) else line or ""
        progress.update(compiled, note)

    code, _ = _run(go, arguments, module, line_read)
    if code != 0:
        progress.finish("failed")
        raise BuildError(f"go build of {names} failed\n" + "\n".join(complaints[-40:]))
    progress.finish(f"{len(packages)} packages compiled" if packages else "nothing to compile")


def _stale_packages(go: Path, module: Path, command: GoCommand, names: str) -> set[str]:
    """Packages that the build cache does not hold yet; fetches the modules they lie in."""
    progress = Progress(f"fetching modules of {names}")
    fetched = 0
    complaints: list[str] = []

    def line_read(line: str | None) -> None:
        nonlocal fetched
        if line is not None and line.startswith("go: downloading"):
            fetched += 1
        elif line is not None:
            complaints.append(line)
        progress.update(fetched)

    template = "{{if .Stale}}{{.ImportPath}}{{end}}"
    arguments = ["list", "-deps", "-trimpath", "-ldflags", command.ldflags, "-f", template, *command.packages]
    code, output = _run(go, arguments, module, line_read)
    if code != 0:
        raise BuildError(f"go list of {names} failed\n" + "\n".join(complaints[-40:]))
    if fetched:
        progress.finish(f"{fetched} modules fetched")
    return set(output.split())


def _run(
    go: Path, arguments: Sequence[str], module: Path, line_read: Callable[[str | None], None]
) -> tuple[int, str]:
    """Run go and return its exit status and output.

    `line_read` gets each line of its error output, and None every half second in between.
    """
    with tempfile.TemporaryFile("w+") as output, selectors.DefaultSelector() as selector:
        process = subprocess.Popen(
            [go, *arguments], cwd=module, env=go_environment(), stdout=output, stderr=subprocess.PIPE
        )
        assert process.stderr is not None
        selector.register(process.stderr, selectors.EVENT_READ)
        try:
            pending = b""
            while True:
                if not selector.select(TICK_SECONDS):
                    line_read(None)
                    continue
                chunk = os.read(process.stderr.fileno(), CHUNK_BYTES)
                if not chunk:
                    break
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    line_read(line.decode(errors="replace"))
            code = process.wait()
        finally:
            process.kill()
        output.seek(0)
        return code, output.read()
