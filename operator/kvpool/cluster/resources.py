"""Which API resources kvpool uses, and how a request addresses one of their objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

Obj: TypeAlias = dict[str, Any]
"""An API object exactly as the server sent it (parsed JSON). Treat it as read-only once it is shared."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One API resource: group, version, plural, kind and scope.

    Two resources are the same when all five agree; usable as a dict key. `str()` gives the name people
    use in RBAC rules: `pods`, `deployments.apps`, `kvpools.kvpool.dev`.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """The `apiVersion` of manifests: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def at(self, namespace: str | None = None, name: str | None = None, sub: str | None = None) -> Target:
        """Address of the collection (no name), an object, or a subresource (`status`, `scale`, ...).

        A namespaced collection without a namespace is the collection across all namespaces.
        Raises ValueError where the address cannot exist.
        """
        return Target(self, namespace, name, sub)

    def of(self, obj: Mapping[str, Any], sub: str | None = None) -> Target:
        """Address of the object that a manifest or an answer describes."""
        metadata = obj["metadata"]
        return Target(self, metadata.get("namespace"), metadata["name"], sub)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: a resource and, within it, a namespace, an object, a subresource."""

    resource: Resource
    namespace: str | None
    name: str | None
    sub: str | None

    def __post_init__(self) -> None:
        if self.namespace is not None and not self.resource.namespaced:
            raise ValueError(f"{self.resource} is cluster-scoped; it has no namespace {self.namespace!r}")
        if self.name is not None and self.namespace is None and self.resource.namespaced:
            raise ValueError(f"{self.resource} {self.name!r} needs a namespace")
        if self.sub is not None and self.name is None:
            raise ValueError(f"{self.resource}: subresource {self.sub!r} needs a name")
        if "" in (self.namespace, self.name, self.sub):
            # An empty part would silently address the whole collection.
            raise ValueError(f"{self.resource}: namespace, name and subresource may not be empty strings")

    @property
    def path(self) -> str:
        """The URL path, with every part percent-encoded."""
        resource = self.resource
        parts = ["apis", resource.group, resource.version] if resource.group else ["api", resource.version]
        if self.namespace is not None:
            parts += ["namespaces", self.namespace]
        parts += [resource.plural, *(part for part in (self.name, self.sub) if part is not None)]
        return "/" + "/".join(quote(part, safe="") for part in parts)

    def __str__(self) -> str:
        where = "/".join(part for part in (self.namespace, self.name) if part is not None)
        text = f"{self.resource} {where}" if where else str(self.resource)
        return f"{text} ({self.sub})" if self.sub else text


def _own(plural: str, kind: str, *, namespaced: bool) -> Resource:
    return Resource("kvpool.dev", "v1alpha1", plural, kind, namespaced)


TIER_BUDGETS = _own("tierbudgets", "TierBudget", namespaced=False)
KV_POOLS = _own("kvpools", "KVPool", namespaced=True)
PD_GROUPS = _own("pdgroups", "PDGroup", namespaced=True)
SUPERNODES = _own("supernodes", "Supernode", namespaced=False)
KV_NODES = _own("kvnodes", "KVNode", namespaced=False)
ENGINE_SLOTS = _own("engineslots", "EngineSlot", namespaced=True)
REMAPS = _own("remaps", "Remap", namespaced=True)

OWN_RESOURCES = (TIER_BUDGETS, KV_POOLS, PD_GROUPS, SUPERNODES, KV_NODES, ENGINE_SLOTS, REMAPS)
"""The kinds of kvpool.dev, those that people write first."""

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod", namespaced=True)
SERVICES = Resource("", "v1", "services", "Service", namespaced=True)
SECRETS = Resource("", "v1", "secrets", "Secret", namespaced=True)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", namespaced=True)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", namespaced=True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", namespaced=True)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", namespaced=True)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", namespaced=True)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", namespaced=True)
HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute", namespaced=True)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
