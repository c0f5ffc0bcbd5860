"""Two operators: a leader that is stopped and comes back does nothing more, and nothing is done twice."""

from __future__ import annotations

import datetime as dt
import signal
from collections.abc import Iterator

import pytest

from devcluster import sandbox
from devcluster.process import ManagedProcess
from tests.harness.waiting import wait_until
from tests.system.failover.conftest import network_of
from tests.system.failover.figures import record
from tests.system.failover.world import NODES, FailoverWorld, serves, stays

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-two-operators")]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[FailoverWorld]:
    """A world with two operator replicas on two hosts."""
    if not sandbox.inside():
        pytest.skip("simulated hosts need addresses of their own: run in `python -m devcluster.sandbox --`")
    world = FailoverWorld(tmp_path_factory.mktemp("pair"), network_of(worker_id), infra_hosts=2)
    try:
        yield world.start(**{"operator.replicas": "2"})
    finally:
        world.stop()


def leader(world: FailoverWorld) -> tuple[str, ManagedProcess]:
    """Identity in the Lease, and the process."""
    namespace = world.installed.namespace
    lease = world.api.get("coordination.k8s.io/v1", "Lease", "kvpool-operator", namespace)
    holder = str(lease["spec"].get("holderIdentity", ""))
    for pod in world.api.list("v1", "Pod", namespace, label_selector="app.kubernetes.io/component=operator"):
        process = world.installed.hosts[pod["spec"]["nodeName"]].process_of(pod)
        if pod["metadata"]["name"] in holder and process is not None:
            return holder, process
    raise AssertionError(f"nobody runs as {holder!r}")


def test_a_leader_that_was_stopped_exits_and_acts_no_more(pair: FailoverWorld) -> None:
    world = pair
    wait_until(lambda: len({*_running(world)}) == 2, 30, "two operators")
    holder, first = leader(world)
    pid = first.pid
    name, left = world.a_slot()
    before = world.epochs()
    began_at = dt.datetime.now(dt.UTC)
    first.signal(signal.SIGSTOP)
    try:
        world.break_device(left)
        wait_until(lambda: leader(world)[0] != holder, 20, "the other operator to lead")
        wait_until(
            lambda: world.epochs()[name] > before[name] and serves(world.slot(name)), 20, "the slot to serve"
        )
    finally:
        first.signal(signal.SIGCONT)
    wait_until(lambda: not first.running or first.pid != pid, 10, "the old leader to exit")
    stays(lambda: world.epochs()[name] > before[name], 2, "the slot after the old leader's return")
    (remap,) = world.remaps(name, before[name])
    assert remap["status"]["phase"] == "Succeeded"
    binds = [
        one
        for one in world.installed.plane.audit.writes(since=began_at)
        if (one.resource, one.subresource, one.name) == ("engineslots", "", name)
    ]
    assert len(binds) == 1
    epoch = remap["spec"]["epoch"]
    assert world.epochs() == {**before, name: epoch}
    assert [world.engine_health(node)[1] for node in NODES].count(epoch) == 1
    record("stopped leader", binds=len(binds))


def _running(world: FailoverWorld) -> list[str]:
    found = []
    for host in ("infra-0", "infra-1"):
        try:
            world.metrics(host=host)
        except OSError:
            continue
        found.append(host)
    return found
