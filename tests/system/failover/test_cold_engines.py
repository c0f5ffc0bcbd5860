"""An engine that starts anew on its seat keeps its epoch, and its weight rises in steps as at first."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest

from demo.neighbours.traefik import GATEWAY_API
from devcluster.rest import JsonObject
from tests.system.failover.figures import record
from tests.system.failover.manifests import GROUP, NAMESPACE
from tests.system.failover.world import OUTPUT, FailoverWorld, serves

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-cold-engines")]

RISE_SECONDS = 30.0


def engine_of(world: FailoverWorld, node: str) -> JsonObject:
    """The Pod of the engine on a node."""
    (pod,) = (pod for pod in world.api.list("v1", "Pod", NAMESPACE) if pod["spec"]["nodeName"] == node)
    return pod


def asked(world: FailoverWorld, slot: str) -> int:
    """The weight that the route asks for."""
    route = world.api.get(GATEWAY_API, "HTTPRoute", f"{GROUP}-{OUTPUT}", NAMESPACE)
    backends = route["spec"]["rules"][0].get("backendRefs", [])
    return next((one.get("weight", 1) for one in backends if one["name"] == f"{slot}-{OUTPUT}"), 0)


def weights_after(world: FailoverWorld, slot: str, what: Callable[[], object]) -> list[tuple[int, float]]:
    """What is asked for a slot from a deed on until it is whole again, each with the second it came."""
    begin, seen = time.monotonic(), [(asked(world, slot), 0.0)]
    what()

    def whole() -> bool:
        weight = asked(world, slot)
        if weight != seen[-1][0]:
            seen.append((weight, time.monotonic() - begin))
        return len(seen) > 1 and weight == 100 and serves(world.slot(slot))

    world.wait_until(whole, RISE_SECONDS, f"a fall and the whole weight, not {seen}")
    return seen


def risen(seen: list[tuple[int, float]]) -> list[int]:
    """The weights above 0, each once in a row.

    The fall to 0 may be too short to be seen; and the first step may come before it, when the Pod's status
    tells of the start sooner than the agent tells of the end.
    """
    return [weight for weight, _ in itertools.groupby(weight for weight, _ in seen if weight)]


def test_an_engine_that_crashed_rises_step_by_step_under_its_epoch(world: FailoverWorld) -> None:
    name, node = world.a_slot()
    epochs, pod = world.epochs(), engine_of(world, node)
    process = world.installed.hosts[node].process_of(pod)
    assert process is not None
    seen = weights_after(world, name, process.kill)
    record("engine started anew", weights=seen)
    assert risen(seen) == [100, 50, 100]
    assert world.epochs() == epochs
    assert engine_of(world, node)["metadata"]["uid"] == pod["metadata"]["uid"]


def test_a_host_that_boots_anew_at_once_has_no_weight_until_its_engine_is_there(world: FailoverWorld) -> None:
    name, node = world.a_slot()
    epochs, host = world.epochs(), world.installed.hosts[node]

    def reboot() -> None:
        host.take_away()
        host.bring_up()

    seen = weights_after(world, name, reboot)
    record("host booted anew", weights=seen)
    assert risen(seen) == [100, 50, 100]
    assert world.epochs() == epochs
