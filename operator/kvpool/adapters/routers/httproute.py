"""HTTPRoute: a Gateway API route of kvpool's own, one Service and EndpointSlice for each slot, with weights.

Acknowledgement is Observed: the route's status must carry its generation, and the data plane itself must
answer with the revision. For the latter the route has one extra rule, an exact path that the gateway answers
with a redirect whose host name carries the revision number. Rules of one route are loaded together, so that
answer proves the weights beside it. The rule uses core features of the Gateway API only (redirect hostname).

Source: Gateway API v1, HTTPRoute: `backendRefs[].weight` 0..1000000; at most 16 backendRefs in a rule.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from kvpool.adapters.routers.base import Desired, Reading, Rendered, Revision, metadata_of
from kvpool.adapters.routers.endpointslice import endpoint, slice_manifest
from kvpool.api import labels
from kvpool.api.pdgroup import HTTPRouteOutput as HTTPRouteTarget

BACKENDS_MAX: Final = 16


class RouteReader(Protocol):
    """What the output needs to read: the route as the cluster has it, and the gateway's data plane."""

    async def route(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return the HTTPRoute, or None."""
        ...

    async def redirect_host(self, gateway_namespace: str, gateway: str, host: str, path: str) -> str | None:
        """Ask the gateway's data plane for `path` and return the redirect's host.

        None when it cannot be asked; an answer that is no redirect is the empty string.
        """
        ...


class HTTPRouteOutput:
    """One route for each output; members beyond 16 do not fit in one rule and are refused."""

    carries_weights = True

    def __init__(self, reader: RouteReader) -> None:
        self._reader = reader

    def render(self, revision: Revision) -> Rendered:
        """Return the Services and slices of the members, then the route.

        Raises:
            ValueError: with more than 16 members, or without the output's own member.
        """
        members = [member for member in revision.members if member.endpoint]
        if len(members) > BACKENDS_MAX:
            raise ValueError(
                f"PDGroup {revision.group}: output {revision.output.name} has {len(members)} members; "
                f"a route's rule takes {BACKENDS_MAX}: split the group, or use an EndpointSlice output"
            )
        objects: list[Desired] = []
        backends = []
        for member in members:
            name = member_service(revision, member.slot.name)
            objects.append(Desired("Service", _service(revision, name, member.slot.name)))
            ends = [endpoint(member.endpoint, ready=True)]
            objects.append(
                Desired("EndpointSlice", slice_manifest(revision, name, name, ends, _port(member.endpoint)))
            )
            backends.append({"kind": "Service", "name": name, "port": revision.port, "weight": member.weight})
        objects.append(Desired("HTTPRoute", _route(revision, backends)))
        return Rendered(tuple(objects), {})

    async def read_back(self, revision: Revision) -> Reading | None:
        """Read the route's status, then ask the data plane which revision it serves."""
        target = _target(revision)
        route = await self._reader.route(revision.group.namespace, route_name(revision))
        if route is None:
            return Reading(in_force=False, detail="the route does not exist")
        refusal = _refusal(route)
        if refusal:
            return Reading(in_force=False, detail=refusal)
        parent = target.parent_ref
        answered = await self._reader.redirect_host(
            parent.namespace or revision.group.namespace,
            parent.name,
            target.hostnames[0] if target.hostnames else "",
            probe_path(revision),
        )
        if answered is None:
            return None
        wanted = probe_host(revision.number)
        return Reading(answered == wanted, f"the data plane answers {answered!r}, wanted {wanted!r}")


def route_name(revision: Revision) -> str:
    """Name of the route of one output."""
    return f"{revision.group.name}-{revision.output.name}"


def member_service(revision: Revision, slot_name: str) -> str:
    """Name of the Service in front of one slot."""
    return f"{slot_name}-{revision.output.name}"


def probe_path(revision: Revision) -> str:
    """The exact path that the data plane answers with the revision."""
    return f"/.well-known/kvpool/{revision.group.namespace}/{revision.group.name}/{revision.output.name}"


def probe_host(number: int) -> str:
    """The host name that carries a revision."""
    return f"revision-{number}.kvpool.invalid"


def _target(revision: Revision) -> HTTPRouteTarget:
    if revision.output.http_route is None:
        raise ValueError(f"output {revision.output.name} of {revision.group}: httpRoute is missing")
    return revision.output.http_route


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _service(revision: Revision, name: str, slot_name: str) -> dict[str, Any]:
    return {
        "metadata": metadata_of(revision, name, {**_labels(revision), labels.SLOT: slot_name}),
        "spec": {"ports": [{"name": "http", "port": revision.port, "protocol": "TCP"}]},
    }


def _route(revision: Revision, backends: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    target = _target(revision)
    parent: dict[str, Any] = {
        "group": "gateway.networking.k8s.io",
        "kind": "Gateway",
        "name": target.parent_ref.name,
    }
    if target.parent_ref.namespace:
        parent["namespace"] = target.parent_ref.namespace
    if target.parent_ref.section_name:
        parent["sectionName"] = target.parent_ref.section_name
    spec: dict[str, Any] = {
        "parentRefs": [parent],
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": target.path_prefix}}],
                "backendRefs": list(backends),
            },
            {
                "matches": [{"path": {"type": "Exact", "value": probe_path(revision)}}],
                "filters": [
                    {
                        "type": "RequestRedirect",
                        "requestRedirect": {"hostname": probe_host(revision.number), "statusCode": 302},
                    }
                ],
            },
        ],
    }
    if target.hostnames:
        spec["hostnames"] = list(target.hostnames)
    metadata = metadata_of(revision, route_name(revision), _labels(revision))
    metadata["annotations"] = {labels.ROUTE_REVISION: str(revision.number)}
    return {"metadata": metadata, "spec": spec}


def _labels(revision: Revision) -> dict[str, str]:
    return {labels.MANAGED_BY: labels.MANAGER, labels.PDGROUP: revision.group.name}


def _refusal(route: Mapping[str, Any]) -> str:
    """Why the route's status does not yet say that this generation is in force; empty when it does."""
    generation = route["metadata"].get("generation", 0)
    parents = route.get("status", {}).get("parents", [])
    if not parents:
        return "no gateway has answered for the route yet"
    for parent in parents:
        states = {condition["type"]: condition for condition in parent.get("conditions", [])}
        for wanted in ("Accepted", "ResolvedRefs"):
            state = states.get(wanted)
            if state is None or state.get("observedGeneration", 0) < generation:
                return f"{wanted} is not yet said of generation {generation}"
            if state["status"] != "True":
                return f"{wanted} is {state['status']}: {state.get('reason')}: {state.get('message', '')}"
    return ""
