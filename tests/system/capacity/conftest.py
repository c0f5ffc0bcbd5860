"""Installations that the tests of one module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devcluster import sandbox
from tests.neighbours.conftest import require_mooncake
from tests.system.capacity.site import Site, SiteFactory


@pytest.fixture(scope="module")
def make_site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[SiteFactory]:
    """Starts installations for a module; takes what `Site.start` takes."""
    if not sandbox.inside():
        pytest.skip("hosts with mounts of their own need the namespaces of devcluster.sandbox")
    require_mooncake()
    network = int(worker_id.removeprefix("gw")) if worker_id.startswith("gw") else 0
    started: list[Site] = []

    def make(**options: object) -> Site:
        folder = tmp_path_factory.mktemp("site")
        site = Site.start(folder, network, **options)  # type: ignore[arg-type] # passed on as they are
        started.append(site)
        return site

    yield make
    for site in started:
        site.stop()
