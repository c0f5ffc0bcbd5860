"""Control planes for tests: whether one can be had, and the one that a worker shares."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import pytest

from devcluster import recipe
from devcluster.controlplane import ControlPlane


class PlaneOptions(TypedDict, total=False):
    """What ControlPlane takes besides its folder."""

    audit: bool
    controllers: bool
    scheduler: bool
    node_grace_seconds: int
    port: int | None
    hosts: Sequence[str]


def start_or_skip(folder: Path, **options: Unpack[PlaneOptions]) -> ControlPlane:
    """Start a control plane, or skip the test with the command that would build one."""
    try:
        return ControlPlane(folder, **options).start()
    except recipe.NotBuiltError as missing:
        pytest.skip(str(missing))


def new_namespace(plane: ControlPlane, prefix: str = "test") -> str:
    """A namespace nobody else uses, with its default ServiceAccount."""
    name = f"{prefix}-{secrets.token_hex(4)}"
    plane.create_namespace(name)
    return name
