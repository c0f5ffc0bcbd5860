"""Renders the chart with helm, without a cluster."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster import recipe

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "kvpool"
NAMESPACE = "kvpool-system"
HELM_SECONDS = 30


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run helm; skips the test where it is not built."""
    try:
        binary = recipe.binary("helm")
    except recipe.NotBuiltError as missing:
        pytest.skip(str(missing))
    return subprocess.run(
        [str(binary), *arguments], capture_output=True, text=True, timeout=HELM_SECONDS, check=False
    )


@cache
def render(*settings: str) -> list[dict[str, Any]]:
    """Return what the chart makes of `name=value` settings; for reading only."""
    flags = [word for setting in settings for word in ("--set", setting)]
    done = helm("template", "kvpool", str(CHART), "--namespace", NAMESPACE, *flags)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """Return the documents of one kind by name."""
    return {found["metadata"]["name"]: found for found in documents if found["kind"] == kind}
