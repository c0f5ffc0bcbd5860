"""Step: kvpool's route takes over from the deployment's own, under load, and the old one is removed."""

from __future__ import annotations

from demo.binding import enforce
from demo.cluster import Cluster
from demo.commands import Commands
from demo.deployment import ROUTE
from demo.engines import ENGINES, NAMESPACE
from demo.moves import KVPOOL
from demo.route_watch import GROUP, RouteWatch
from demo.screen import Screen
from devcluster.rest import JsonObject

FULL_WEIGHT = 100
SECONDS = 120.0
DECODE = sum(engine.role == "decode" for engine in ENGINES)


def take_over(cluster: Cluster, commands: Commands, watch: RouteWatch) -> None:
    """Set Supernode and group to Enforce, wait for kvpool's route, remove the old one.

    Raises TimeoutError or CommandFailedError.
    """
    enforce(commands, "supernode/sn-a", "pdgroup/chat")
    wait_for_full_weights(cluster, watch)
    commands.kubectl("delete", "httproute", ROUTE, f"--namespace={NAMESPACE}")


def wait_for_full_weights(cluster: Cluster, watch: RouteWatch, deadline_seconds: float = SECONDS) -> None:
    """Wait until the gateway gives every decode slot its full weight. Raises TimeoutError."""

    def full() -> bool:
        newest = watch.newest()
        weights = [] if newest is None else list(newest.weights.values())
        return len(weights) == DECODE and all(weight == FULL_WEIGHT for weight in weights)

    cluster.plane.admin.wait_until(full, deadline_seconds, "every decode slot to have its full weight")


def routing_status(cluster: Cluster, screen: Screen) -> JsonObject:
    """Return the group's word about its output: revision, acknowledged, at."""
    api = cluster.plane.admin

    def settled() -> bool:
        routing = _routing(api.get(KVPOOL, "PDGroup", GROUP, NAMESPACE))
        return bool(routing["outputs"]) and routing["outputs"][0]["revision"] == routing["revision"]

    try:
        api.wait_until(settled, SECONDS, "the group's status to have the newest revision")
    except TimeoutError as error:
        screen.expect(False, f"the group says which revision its output carries ({error})")
    outputs = _routing(api.get(KVPOOL, "PDGroup", GROUP, NAMESPACE)).get("outputs", [])
    return dict(outputs[0]) if outputs else {"revision": 0, "acknowledged": "Pending"}


def _routing(group: JsonObject) -> JsonObject:
    return dict(group.get("status", {}).get("routing", {"outputs": [], "revision": 0}))
