"""A whole kvpool for each test that asks for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost
from tests.harness.installation import Installation


@pytest.fixture
def kvpool(
    fresh_control_plane: Callable[..., ControlPlane],
    add_host: Callable[..., SimulatedHost],
    tmp_path: Path,
    worker_id: str,
) -> Iterator[Callable[..., Installation]]:
    """Installs kvpool with an `infra` host and `gpu` hosts node-1..n: `kvpool(hosts=2, mode="Enforce")`."""
    started: list[Installation] = []

    def start(
        *, hosts: int = 1, mode: str = "Enforce", gateway_api: bool = False, **values: str
    ) -> Installation:
        plane = fresh_control_plane(controllers=True, scheduler=True, gateway_api=gateway_api, crds=False)
        made = Installation(plane, tmp_path, namespace=f"kvpool-{worker_id}")
        started.append(made)
        options = made.host_options()
        made.hosts["infra-0"] = add_host(plane, "infra-0", labels={"kvpool.dev/class": "infra"}, **options)
        for index in range(1, hosts + 1):
            name = f"node-{index}"
            labels = {
                "pool": "gpu",
                "kvpool.dev/board": f"board-{index}",
                "kvpool.dev/rack": f"rack-{(index + 1) // 2}",
            }
            made.hosts[name] = add_host(plane, name, labels=labels, **options)
            made.write_devices(
                name, [{"id": f"dev{n}", "uuid": f"{name}-dev{n}", "faults": []} for n in (0, 1)]
            )
        return made.install(mode, **values)

    yield start
    for made in started:
        made.stop()
