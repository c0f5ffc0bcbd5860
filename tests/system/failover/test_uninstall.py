"""`uninstall --drain` of a group that serves: outputs, slots and labels go, engines and gateway stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from demo.neighbours.traefik import GATEWAY_API
from tests.harness.leftovers import leftovers
from tests.harness.waiting import wait_until
from tests.system.failover.in_and_out import add_outputs, in_service, labelled
from tests.system.failover.manifests import NAMESPACE
from tests.system.failover.world import NODES, FailoverWorld

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-uninstall")]

PLUGIN = Path(sys.executable).with_name("kubectl-kvpool")
FOLLOW_SECONDS = 20.0
COMMAND_SECONDS = 120


def test_everything_that_outputs_wrote_goes_and_what_others_wrote_stays(shared_world: FailoverWorld) -> None:
    world = shared_world
    add_outputs(world)
    wait_until(
        lambda: in_service(world) == labelled(world) == set(world.seats().values()),
        FOLLOW_SECONDS,
        "the outputs",
    )
    pods = {pod["metadata"]["uid"] for pod in world.api.list("v1", "Pod", NAMESPACE)}
    where = [
        f"--kubeconfig={world.installed.plane.kubeconfig}",
        f"--operator-namespace={world.installed.namespace}",
    ]
    done = subprocess.run(
        [str(PLUGIN), "uninstall", "--drain", "--yes", "--timeout=90s", *where],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = leftovers(world.api, gateway=True)
    assert [one for one in found if "Helm" not in one or one.startswith("Pod ")] == []
    assert labelled(world) == in_service(world) == set()
    assert {world.engine_health(node) for node in NODES} == {("standby", 0)}, "no engine holds a seat"
    assert {pod["metadata"]["uid"] for pod in world.api.list("v1", "Pod", NAMESPACE)} == pods
    assert world.api.list(GATEWAY_API, "Gateway")
    assert world.api.find("v1", "Service", "decode", NAMESPACE) is not None, "a Service of people's"
