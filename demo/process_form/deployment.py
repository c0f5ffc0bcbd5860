"""The existing deployment in process form: master and gateway as processes, engines on simulated hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from demo import places
from demo.accelerators import Accelerators, device_id
from demo.cluster import INFRA
from demo.deployment import (
    GATEWAY_NAMESPACE,
    GATEWAY_PORT,
    OWNER,
    READY_SECONDS,
    Deployment,
    start_route,
    wait_for_engines,
)
from demo.engines import ENGINES, NAMESPACE, OWN_SEGMENTS
from demo.neighbours.mooncake import MooncakeMaster
from demo.neighbours.traefik import TraefikGateway
from demo.process_form.engine_pod import engine_pod
from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost
from devcluster.rest import JsonObject

MASTER_SERVICE = "mooncake-master"
RPC_PORT, ADMIN_PORT = 50051, 9003


@contextmanager
def running_deployment(
    plane: ControlPlane, hosts: Mapping[str, SimulatedHost], accelerators: Mapping[str, Accelerators]
) -> Iterator[Deployment]:
    """Start it, wait until it serves, and end it when left. Raises ProcessError, ApiError or TimeoutError."""
    plane.create_namespace(NAMESPACE)
    address = hosts[INFRA].address
    logs = places.LOGS / INFRA
    gateway = TraefikGateway(
        plane.admin, logs, address=address, port=GATEWAY_PORT, namespace=GATEWAY_NAMESPACE
    )
    master = MooncakeMaster(
        address=address, log_path=logs / "mooncake.log", rpc_port=RPC_PORT, admin_port=ADMIN_PORT
    )
    try:
        with master:
            for manifest in _master_service(address):
                plane.admin.apply(manifest, field_manager=OWNER)
            _start_engines(hosts, accelerators, master.endpoint)
            gateway.start()
            wait_for_engines(plane.admin)
            start_route(plane.admin, gateway.parent_ref)
            master.admin.wait_for_segments(OWN_SEGMENTS, deadline_seconds=READY_SECONDS)
            yield Deployment(master.endpoint, master.admin, gateway.url)
    finally:
        gateway.stop()


def _master_service(address: str) -> tuple[JsonObject, ...]:
    """A Service without a selector, and the slice that a person made for it."""
    ports = [("rpc", RPC_PORT), ("admin", ADMIN_PORT)]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": MASTER_SERVICE, "namespace": NAMESPACE},
        "spec": {"clusterIP": "None", "ports": [{"name": name, "port": port} for name, port in ports]},
    }
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": MASTER_SERVICE,
            "namespace": NAMESPACE,
            "labels": {"kubernetes.io/service-name": MASTER_SERVICE},
        },
        "addressType": "IPv4",
        "ports": [{"name": name, "port": port} for name, port in ports],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
    }
    return service, slice_


def _start_engines(
    hosts: Mapping[str, SimulatedHost], accelerators: Mapping[str, Accelerators], master: str
) -> None:
    holders: dict[str, dict[str, str]] = {}
    for engine in ENGINES:
        pod = hosts[engine.node].add_pod(engine_pod(engine, master))
        holders.setdefault(engine.node, {})[device_id(engine.device)] = pod["metadata"]["uid"]
    for node, held in holders.items():
        accelerators[node].hold(held)
