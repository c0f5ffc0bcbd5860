"""The existing deployment on real nodes: master, gateway, device plugin and engines as Pods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from demo.cluster import INFRA, RACKS
from demo.deployment import (
    GATEWAY_NAMESPACE,
    GATEWAY_PORT,
    OWNER,
    READY_SECONDS,
    Deployment,
    start_route,
    wait_for_engines,
)
from demo.engines import ATTACH_SECONDS, ENGINES, NAMESPACE, OWN_SEGMENTS, EnginePlace
from demo.neighbours import pods
from demo.neighbours.mooncake import MooncakeAdmin
from demo.neighbours.store import SMALLEST_SEGMENT_BYTES
from demo.neighbours.traefik import GATEWAY_API, gateway_objects, is_programmed
from demo.neighbours.traefik_pod import traefik_deployment
from devcluster.controlplane import ControlPlane
from devcluster.nodes.layout import address
from devcluster.rest import Api

GATEWAY = "edge"
CLIENT_TTL_SECONDS = 10
"""Mooncake's default: a lost host's segments are soon forgotten."""


@contextmanager
def running_deployment(plane: ControlPlane) -> Iterator[Deployment]:
    """Start it and wait until it serves; it ends with its nodes. Raises ApiError or TimeoutError."""
    api, host = plane.admin, address(INFRA)
    store = MooncakeAdmin(f"http://{host}:{pods.ADMIN_PORT}")
    plane.create_namespace(NAMESPACE)
    manifests = [
        *pods.store_master(NAMESPACE, INFRA, CLIENT_TTL_SECONDS),
        pods.device_plugin(NAMESPACE),
        *gateway_objects(GATEWAY_NAMESPACE, GATEWAY, GATEWAY_PORT),
        traefik_deployment(GATEWAY_NAMESPACE, INFRA, GATEWAY_PORT),
    ]
    for manifest in manifests:
        api.apply(manifest, field_manager=OWNER)
    api.wait_until(store.healthy, READY_SECONDS, "the store's master to serve")
    api.wait_until(lambda: _accelerators_are_offered(api), READY_SECONDS, "accelerators on every node")
    for engine in ENGINES:
        api.apply(_engine_pod(engine).manifest(NAMESPACE), field_manager=OWNER)
    api.wait_until(lambda: _gateway_is_programmed(api), READY_SECONDS, "the gateway to be Programmed")
    wait_for_engines(api)
    start_route(api, {"name": GATEWAY, "namespace": GATEWAY_NAMESPACE})
    store.wait_for_segments(OWN_SEGMENTS, deadline_seconds=READY_SECONDS)
    yield Deployment(f"{host}:{pods.RPC_PORT}", store, f"http://{host}:{GATEWAY_PORT}")


def _engine_pod(engine: EnginePlace) -> pods.EnginePod:
    return pods.EnginePod(
        engine.name,
        engine.role,
        engine.node,
        segment_bytes=0 if engine.role == "standby" else SMALLEST_SEGMENT_BYTES,
        attach_seconds=ATTACH_SECONDS,
        port=engine.port,
    )


def _accelerators_are_offered(api: Api) -> bool:
    """Whether every node with accelerators offers them to Pods."""
    nodes = [api.get("v1", "Node", name) for name in RACKS]
    return all(node["status"]["allocatable"].get(pods.RESOURCE, "0") != "0" for node in nodes)


def _gateway_is_programmed(api: Api) -> bool:
    return is_programmed(api.get(GATEWAY_API, "Gateway", GATEWAY, GATEWAY_NAMESPACE))
