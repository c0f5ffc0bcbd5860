"""The existing deployment, in whichever form: what of it the steps use, and its own route to engines."""

from __future__ import annotations

from dataclasses import dataclass

from demo.engines import ENGINES, NAMESPACE
from demo.neighbours.mooncake import MooncakeAdmin
from demo.neighbours.route import EngineEndpoint, engine_service, http_route
from demo.neighbours.traefik import route_accepted
from devcluster.rest import Api, JsonObject

ROUTE = "engines"
OWNER = "existing-deployment"
GATEWAY_NAMESPACE = "gateway"
GATEWAY_PORT = 8000
READY_SECONDS = 120.0


@dataclass(frozen=True)
class Deployment:
    """What is there before kvpool comes."""

    master: str
    """host:port of the store's master."""
    store: MooncakeAdmin
    """The master's own surface."""
    gateway_url: str


def wait_for_engines(api: Api) -> None:
    """Wait until every engine Pod runs, and is Ready where it serves. Raises TimeoutError."""

    def all_ready() -> bool:
        pods = api.list("v1", "Pod", NAMESPACE, "app=engine")
        return len(pods) == len(ENGINES) and all(
            one["ready"] for pod in pods for one in pod["status"].get("containerStatuses", [{"ready": False}])
        )

    api.wait_until(all_ready, READY_SECONDS, "all engines to be ready")


def start_route(api: Api, parent_ref: JsonObject) -> None:
    """Send requests to the decode engines, half of them to each. Raises ApiError or TimeoutError."""
    decode = [engine for engine in ENGINES if engine.role == "decode"]
    for engine in decode:
        pod = api.get("v1", "Pod", engine.name, NAMESPACE)
        endpoint = EngineEndpoint(pod["status"]["podIP"], engine.port)
        for manifest in engine_service(NAMESPACE, engine.name, [endpoint]):
            api.apply(manifest, field_manager=OWNER)
    weights = {engine.name: 50 for engine in decode}
    route = http_route(NAMESPACE, ROUTE, parent_ref=parent_ref, weights=weights)
    api.apply(route, field_manager=OWNER)

    def accepted() -> bool:
        return route_accepted(api.get("gateway.networking.k8s.io/v1", "HTTPRoute", ROUTE, NAMESPACE))

    api.wait_until(accepted, READY_SECONDS, "the gateway to accept the deployment's route")
