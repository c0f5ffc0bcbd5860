"""EndpointSlice: in or out, for a Service without a selector. Every kind of router obeys it."""

from typing import Any

from kvpool.adapters.routers.base import Desired, Reading, Rendered, Revision, metadata_of
from kvpool.api import labels

SLICE_MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"


class EndpointSliceOutput:
    """Endpoints of weight 0 stay listed as serving but not ready: no new work, old work may end."""

    carries_weights = False

    def render(self, revision: Revision) -> Rendered:
        """Return one slice with every attached member."""
        target = revision.output.endpoint_slice
        if target is None:
            raise ValueError(f"output {revision.output.name} of {revision.group}: endpointSlice is missing")
        name = f"{revision.group.name}-{revision.output.name}"
        endpoints = [
            endpoint(member.endpoint, ready=member.weight > 0)
            for member in revision.members
            if member.endpoint
        ]
        manifest = slice_manifest(revision, name, target.service_name, endpoints, revision.port)
        return Rendered((Desired("EndpointSlice", manifest),), {})

    async def read_back(self, revision: Revision) -> Reading | None:
        """Routers do not say what they read from a slice."""
        return None


def endpoint(address: str, *, ready: bool) -> dict[str, Any]:
    """One endpoint of a slice; `address` is address:port, whose port the slice states once."""
    return {
        "addresses": [address.rpartition(":")[0]],
        "conditions": {"ready": ready, "serving": True, "terminating": False},
    }


def slice_manifest(
    revision: Revision, name: str, service_name: str, endpoints: list[dict[str, Any]], port: int
) -> dict[str, Any]:
    """An EndpointSlice of kvpool's own."""
    marks = {
        SLICE_MANAGED_BY: labels.MANAGER,
        SERVICE_NAME: service_name,
        labels.PDGROUP: revision.group.name,
    }
    return {
        "metadata": metadata_of(revision, name, marks),
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
    }
