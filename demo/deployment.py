"""The existing deployment: a Mooncake master, engines with small segments, a gateway and its route."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from demo import places
from demo.cluster import INFRA, Cluster
from demo.engines import ENGINES, NAMESPACE, engine_pod
from demo.neighbours.mooncake import MooncakeMaster
from demo.neighbours.route import EngineEndpoint, engine_service, http_route
from demo.neighbours.traefik import TraefikGateway, route_accepted
from devcluster.rest import JsonObject

ROUTE = "engines"
OWNER = "existing-deployment"
MASTER_SERVICE = "mooncake-master"
RPC_PORT, ADMIN_PORT, GATEWAY_PORT = 50051, 9003, 8000
READY_SECONDS = 120.0
OWN_SEGMENTS = sum(engine.role != "standby" for engine in ENGINES)


@dataclass(frozen=True)
class Deployment:
    """What is there before kvpool comes."""

    master: MooncakeMaster
    gateway: TraefikGateway

    def engine_starts(self, cluster: Cluster) -> dict[str, tuple[str, int, int]]:
        """Pod UID, process id and restarts by engine: the same again means that nothing was restarted."""
        found = {}
        for pod in cluster.plane.admin.list("v1", "Pod", NAMESPACE, "app=engine"):
            process = cluster.process_of(pod)
            status = pod["status"]["containerStatuses"][0]
            pid = process.pid if process is not None else 0
            found[pod["metadata"]["name"]] = (pod["metadata"]["uid"], pid, status["restartCount"])
        return found


@contextmanager
def existing_deployment(cluster: Cluster) -> Iterator[Deployment]:
    """Start it, wait until it serves, and end it when left. Raises ProcessError, ApiError or TimeoutError."""
    plane, infra = cluster.plane, cluster.infra
    plane.create_namespace(NAMESPACE)
    address = infra.address
    gateway = TraefikGateway(
        plane.admin, places.LOGS / INFRA, address=address, port=GATEWAY_PORT, namespace="gateway"
    )
    log = places.LOGS / INFRA / "mooncake.log"
    try:
        with MooncakeMaster(
            address=address, log_path=log, rpc_port=RPC_PORT, admin_port=ADMIN_PORT
        ) as master:
            for manifest in _master_service(address):
                plane.admin.apply(manifest, field_manager=OWNER)
            _start_engines(cluster, master)
            gateway.start()
            _start_route(cluster, gateway)
            master.admin.wait_for_segments(OWN_SEGMENTS, deadline_seconds=READY_SECONDS)
            yield Deployment(master, gateway)
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


def _start_engines(cluster: Cluster, master: MooncakeMaster) -> None:
    holders: dict[str, dict[str, str]] = {}
    for engine in ENGINES:
        pod = cluster.nodes[engine.node].add_pod(engine_pod(engine, master.endpoint))
        holders.setdefault(engine.node, {})[engine.device_id] = pod["metadata"]["uid"]
    for node, held in holders.items():
        cluster.accelerators[node].hold(held)


def _start_route(cluster: Cluster, gateway: TraefikGateway) -> None:
    """Send requests to the decode engines, half of them to each."""
    api = cluster.plane.admin
    decode = [engine for engine in ENGINES if engine.role == "decode"]
    for engine in decode:
        endpoint = EngineEndpoint(cluster.nodes[engine.node].address, engine.port)
        for manifest in engine_service(NAMESPACE, engine.name, [endpoint]):
            api.apply(manifest, field_manager=OWNER)
    weights = {engine.name: 50 for engine in decode}
    route = http_route(NAMESPACE, ROUTE, parent_ref=gateway.parent_ref, weights=weights)
    api.apply(route, field_manager=OWNER)

    def accepted() -> bool:
        return route_accepted(api.get("gateway.networking.k8s.io/v1", "HTTPRoute", ROUTE, NAMESPACE))

    api.wait_until(accepted, READY_SECONDS, "the gateway to accept the deployment's route")


def wait_for_engines(cluster: Cluster) -> None:
    """Wait until every engine Pod runs, and is Ready where it serves. Raises TimeoutError."""

    def all_ready() -> bool:
        pods = cluster.plane.admin.list("v1", "Pod", NAMESPACE, "app=engine")
        return len(pods) == len(ENGINES) and all(
            one["ready"] for pod in pods for one in pod["status"].get("containerStatuses", [{"ready": False}])
        )

    cluster.plane.admin.wait_until(all_ready, READY_SECONDS, "all engines to be ready")
