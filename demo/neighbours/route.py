"""The deployment's own way from gateway to engines: Services, EndpointSlices, an HTTPRoute, as manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from devcluster.rest import JsonObject

PORT_NAME = "http"
SERVICE_PORT = 80
"""Of every engine Service, whatever port its engines listen on."""


@dataclass(frozen=True)
class EngineEndpoint:
    """Where one engine listens; `address` must not be loopback, EndpointSlices refuse that."""

    address: str
    port: int


def engine_service(namespace: str, name: str, endpoints: Sequence[EngineEndpoint]) -> tuple[JsonObject, ...]:
    """Return a Service without a selector, and its EndpointSlice. All endpoints share one port."""
    ports = {endpoint.port for endpoint in endpoints}
    if len(ports) != 1:
        raise ValueError(f"{namespace}/{name}: one port for all engines needed, there are {sorted(ports)}")
    (port,) = ports
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"name": PORT_NAME, "port": SERVICE_PORT, "protocol": "TCP", "targetPort": port}]},
    }
    slice_ = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "ports": [{"name": PORT_NAME, "port": port, "protocol": "TCP"}],
        "endpoints": [
            {"addresses": [endpoint.address], "conditions": {"ready": True}} for endpoint in endpoints
        ],
    }
    return service, slice_


def http_route(
    namespace: str, name: str, *, parent_ref: JsonObject, weights: Mapping[str, int]
) -> JsonObject:
    """Return an HTTPRoute for every path; `weights` are by Service name.

    Two routes for the same paths must not stand side by side for longer than a hand-over: which of them
    Traefik follows is decided anew, by chance, at each change of its configuration (seen with 3.6.12).
    """
    backends = [
        {"name": service, "port": SERVICE_PORT, "weight": weight} for service, weight in weights.items()
    ]
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"parentRefs": [parent_ref], "rules": [{"backendRefs": backends}]},
    }
