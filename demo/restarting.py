"""Step: every agent is killed and comes back; keepers and what they hold stay."""

from __future__ import annotations

import time

from demo.cluster import Cluster
from demo.deployment import Deployment
from demo.install import pods_of
from demo.moves import KVPOOL
from demo.neighbours.mooncake import MooncakeAdmin
from demo.screen import Screen
from devcluster.rest import JsonObject

SETTLE_SECONDS = 120.0
BACK_SECONDS = 120.0


def restart_agents(cluster: Cluster, deployment: Deployment, screen: Screen, lost_node: str) -> int:
    """Kill every agent that runs, wait for all of them, and return how many objects were lost.

    Raises TimeoutError.
    """
    admin = deployment.store
    screen.say(f"Waiting until the store has forgotten the segments of {lost_node} ...")
    began = time.monotonic()
    _wait_until_forgotten(cluster, admin, lost_node)
    screen.say(f"The store forgot the segments of {lost_node} {time.monotonic() - began:.1f} s later.")
    objects, segments = admin.key_count(), _segments(admin)
    keepers = _lives(cluster, "keeper")
    before = _incarnations(cluster)
    agents = [pod for pod in pods_of(cluster, "agent") if pod["spec"]["nodeName"] != lost_node]
    for pod in agents:
        cluster.kill(pod)

    def back() -> bool:
        now = _incarnations(cluster)
        return all(now[pod["spec"]["nodeName"]] > before[pod["spec"]["nodeName"]] for pod in agents)

    killed_at = time.monotonic()
    cluster.plane.admin.wait_until(back, BACK_SECONDS, "every agent to report under a new incarnation")
    took = time.monotonic() - killed_at
    lost = objects - admin.key_count()
    screen.say(
        f"{len(agents)} agents were killed and all reported again after {took:.1f} s; "
        f"the store has {admin.key_count()} objects."
    )
    screen.expect(lost == 0, f"{lost} of {objects} objects were lost")
    screen.expect(_segments(admin) == segments, f"all {len(segments)} segments are the ones from before")
    screen.expect(
        _lives(cluster, "keeper") == keepers, f"all {len(keepers)} keepers are the ones from before"
    )
    return lost


def _wait_until_forgotten(cluster: Cluster, admin: MooncakeAdmin, node: str) -> None:
    """Objects on the host that was taken away go with its segments, once the master gives up on them."""
    counts: list[int] = []

    def settled() -> bool:
        counts.append(admin.key_count())
        gone = not any(cluster.lies_on(node, name) for name in _segments(admin))
        return gone and len(counts) > 10 and len(set(counts[-10:])) == 1

    cluster.plane.admin.wait_until(settled, SETTLE_SECONDS, f"the store to forget the segments of {node}")


def _segments(admin: MooncakeAdmin) -> set[str]:
    return {segment.name for segment in admin.segments()}


def _lives(cluster: Cluster, component: str) -> dict[str, str]:
    """By name of those Pods that run."""
    lives = {pod["metadata"]["name"]: cluster.life_of(pod) for pod in pods_of(cluster, component)}
    return {name: life for name, life in lives.items() if life}


def _incarnations(cluster: Cluster) -> dict[str, int]:
    nodes: list[JsonObject] = cluster.plane.admin.list(KVPOOL, "KVNode")
    return {node["metadata"]["name"]: int(node.get("status", {}).get("incarnation", 0)) for node in nodes}
