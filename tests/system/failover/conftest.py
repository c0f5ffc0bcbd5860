"""One world for the tests of a module: they share it in any order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster import sandbox
from tests.system.failover.world import FailoverWorld


def network_of(worker_id: str) -> int:
    """A network of addresses that no other worker, and no host of other tests, uses."""
    return 100 + (int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0)


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[FailoverWorld]:
    """Brought up once for a module."""
    if not sandbox.inside():
        pytest.skip("simulated hosts need addresses of their own: run in `python -m devcluster.sandbox --`")
    world = FailoverWorld(tmp_path_factory.mktemp("failover"), network_of(worker_id))
    try:
        yield world.start()
    finally:
        world.stop()


@pytest.fixture
def world(shared_world: FailoverWorld) -> FailoverWorld:
    """The module's world, healed: both slots serve, both spares are free."""
    shared_world.settle()
    return shared_world
