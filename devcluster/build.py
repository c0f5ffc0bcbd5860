"""Build what devcluster runs, once, into the cache: `python -m devcluster.build [PART|all]`."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

from devcluster import recipe
from devcluster.build_faults import told_of
from devcluster.build_lock import only_builder
from devcluster.cache import move_into_place
from devcluster.compiling import compile_command
from devcluster.helm import unpack_helm
from devcluster.progress import Progress
from devcluster.recipe import Part
from devcluster.toolchain import BuildError, find_go, go_environment

DOWNLOAD_SECONDS = 300
STOPPED = 130


def build(part: Part) -> None:
    """Build a part unless it is there already. Raises BuildError."""
    with told_of(f"building {part.name}"):
        if part.built:
            return
        with only_builder():
            if not part.built:  # nor by the one we waited for
                _make(part)


def _make(part: Part) -> None:
    progress = Progress(f"building {part.name}")
    partial = part.folder.with_name(part.folder.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    programs = partial / "bin"
    programs.mkdir(parents=True)
    if part is recipe.HELM:
        unpack_helm(programs)
    elif part is recipe.GATEWAY_API:
        _copy_gateway_api_crds(find_go(), partial / "crds")
    else:
        go = find_go()
        for command in part.commands:
            compile_command(go, part.module, command, programs)
    move_into_place(partial, part.folder)
    progress.finish(f"in {part.folder}")


def _copy_gateway_api_crds(go: Path, target: Path) -> None:
    result = subprocess.run(
        [go, "mod", "download", "-json", recipe.GATEWAY_API_MODULE],
        cwd=recipe.GATEWAY_API.module,
        env=go_environment(),
        capture_output=True,
        text=True,
        timeout=DOWNLOAD_SECONDS,
        check=False,
    )
    if result.returncode != 0:
        raise BuildError(f"go mod download {recipe.GATEWAY_API_MODULE} failed\n{result.stderr.strip()}")
    shutil.copytree(Path(json.loads(result.stdout)["Dir"]) / "config" / "crd" / "standard", target)
    for path in [target, *target.iterdir()]:
        path.chmod(0o755 if path.is_dir() else 0o644)


def main() -> int:
    """Build the named part, or all; exit status 1 with one message when something cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m devcluster.build", description=__doc__)
    parser.add_argument("part", nargs="?", default="all", choices=[*recipe.PARTS, "all"])
    wanted = parser.parse_args().part
    try:
        for name, part in recipe.PARTS.items():
            if wanted in (name, "all"):
                build(part)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; what is compiled already stays in the cache", file=sys.stderr)
        return STOPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
