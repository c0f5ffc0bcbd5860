"""The commands that a person would type: kubectl, its kvpool plugin, and helm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from demo import places
from demo.screen import Screen
from devcluster import recipe
from devcluster.cache import CHECKOUT

COMMAND_SECONDS = 150


class CommandFailedError(RuntimeError):
    """A command ended with another exit status than 0; the message carries what it said."""


class Commands:
    """Runs commands as the administrator and shows them."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def kubectl(self, *arguments: str, show: bool = True) -> str:
        """Run kubectl. Raises CommandFailedError."""
        return self._run([str(recipe.binary("kubectl")), *arguments], ["kubectl", *arguments], show=show)

    def helm(self, *arguments: str) -> str:
        """Run helm; only its first line is shown. Raises CommandFailedError."""
        return self._run([str(recipe.binary("helm")), *arguments], ["helm", *arguments], shown_lines=slice(1))

    def kvpool(self, *arguments: str, last_lines: int = 0, show: bool = True) -> str:
        """Run kubectl's kvpool plugin; exit status 1 says that it found something. Raises CommandFailedError.

        kubectl hands over to the program `kubectl-kvpool` on PATH. `last_lines` shows the end alone.
        """
        words = ["kubectl", "kvpool", *arguments]
        lines = slice(-last_lines or None, None)
        argv = [str(recipe.binary("kubectl")), *words[1:]]
        return self._run(argv, words, show=show, good=(0, 1), shown_lines=lines)

    def _run(
        self,
        argv: Sequence[str],
        shown: Sequence[str],
        *,
        show: bool = True,
        shown_lines: slice = slice(None),
        good: Sequence[int] = (0,),
    ) -> str:
        result = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            env=environment(),
            cwd=CHECKOUT,
            check=False,
        )
        if result.returncode not in good:
            said = (result.stderr or result.stdout).strip()
            raise CommandFailedError(f"`{' '.join(shown)}` ended with {result.returncode}: {said}")
        if show:
            self._screen.ran(shown, "\n".join(result.stdout.splitlines()[shown_lines]))
        return result.stdout


def environment() -> dict[str, str]:
    """What a shell inside has: the kubeconfig, the programs on PATH, and caches of its own."""
    helm = places.FOLDER / "helm"
    path = [
        str(Path(sys.executable).parent),
        str(recipe.CONTROL_PLANE.folder / "bin"),
        str(recipe.HELM.folder / "bin"),
        os.environ.get("PATH", ""),
    ]
    return {
        **os.environ,
        "KUBECONFIG": str(places.KUBECONFIG),
        "PATH": os.pathsep.join(path),
        "KUBECACHEDIR": str(places.FOLDER / "kubectl-cache"),
        "COLUMNS": "100",
        "HELM_CACHE_HOME": str(helm / "cache"),
        "HELM_CONFIG_HOME": str(helm / "config"),
        "HELM_DATA_HOME": str(helm / "data"),
    }
