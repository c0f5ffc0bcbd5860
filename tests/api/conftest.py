"""A control plane that knows kvpool's kinds."""

from __future__ import annotations

import pytest

from devcluster.controlplane import ControlPlane


@pytest.fixture(scope="session")
def kvpool_plane(control_plane: ControlPlane) -> ControlPlane:
    """The worker's shared control plane, with the CRDs installed."""
    control_plane.install_crds()
    return control_plane
