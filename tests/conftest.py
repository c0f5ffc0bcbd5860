"""Fixtures every test may use: real control planes, namespaces, and what is known about skips."""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Unpack

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # `tests.harness` and `devcluster` are imported from the checkout
    sys.path.insert(0, str(ROOT))

from devcluster.controlplane import ControlPlane  # noqa: E402 - needs the path above
from devcluster.hosts import HostOptions, SimulatedHost, host_address  # noqa: E402 - needs the path above
from tests.harness import planes, skips  # noqa: E402 - needs the path above

PLANE_FIXTURES = {"control_plane", "namespace", "fresh_control_plane"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{skips.EXEMPT_MARKER}: needs kind or an existing cluster; may be skipped under strict"
    )
    if skips.strict():
        config.pluginmanager.register(skips.StrictSkips())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if PLANE_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.real)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skips.write_skip_reasons(terminalreporter)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane this worker's tests share: API only, no controllers.

    Cluster-scoped objects are shared too, so a test that needs them to itself, or runs an operator,
    takes `fresh_control_plane`.
    """
    plane = planes.start_or_skip(tmp_path_factory.mktemp("control-plane"))
    yield plane
    plane.stop()


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    """A new namespace on the shared control plane, with its default ServiceAccount."""
    return planes.new_namespace(control_plane)


@pytest.fixture
def fresh_control_plane(tmp_path: Path) -> Iterator[Callable[..., ControlPlane]]:
    """Starts control planes that belong to this test alone; takes the options of ControlPlane.

    `crds=True` (the default) installs kvpool's own CRDs, `gateway_api=True` those of Gateway API.
    """
    started: list[ControlPlane] = []

    def start(
        *, crds: bool = True, gateway_api: bool = False, **options: Unpack[planes.PlaneOptions]
    ) -> ControlPlane:
        plane = planes.start_or_skip(tmp_path / f"control-plane-{len(started)}", **options)
        started.append(plane)
        if crds:
            plane.install_crds()
        if gateway_api:
            plane.install_gateway_api()
        return plane

    yield start
    for plane in started:
        plane.stop()


@pytest.fixture
def add_host(worker_id: str) -> Iterator[Callable[..., SimulatedHost]]:
    """Brings simulated hosts up, each with an address of its own, and takes them away in the end.

    `add_host(plane, "node-1", labels={...}, runner=...)`; options as SimulatedHost takes them.
    """
    network = int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0
    indices = itertools.count(1)
    added: list[SimulatedHost] = []
    # A Unix socket's path has at most 107 bytes: pytest's own folders are too deep for an agent's.
    folder = Path(tempfile.mkdtemp(prefix="kvpool-"))

    def add(plane: ControlPlane, name: str, **options: Unpack[HostOptions]) -> SimulatedHost:
        host = SimulatedHost(plane, name, host_address(next(indices), network), folder / name, **options)
        added.append(host)
        return host.bring_up()

    yield add
    for host in added:
        host.take_away()
    shutil.rmtree(folder, ignore_errors=True)
