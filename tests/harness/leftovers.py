"""What a cluster's objects still say of kvpool: by who wrote them and by their labels, whoever looks."""

from __future__ import annotations

from collections.abc import Iterator

from devcluster.rest import Api, JsonObject
from kvpool.api import labels
from tests.harness.objects import KVPOOL

OWN = ("TierBudget", "KVPool", "PDGroup", "Supernode", "KVNode", "EngineSlot", "Remap")
OTHERS = (
    ("v1", "Node"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("coordination.k8s.io/v1", "Lease"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("policy/v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
)
ROUTES = ("gateway.networking.k8s.io/v1", "HTTPRoute")
DEFINITIONS = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
MANAGERS = ("kvpool-", "kubectl-kvpool")
"""How the names of kvpool's field managers begin."""


def leftovers(api: Api, *, gateway: bool = False) -> list[str]:
    """Everything of kvpool's in the cluster, but for its definitions and Events (which go by themselves).

    An object counts by its kind, its finalizers, who wrote any field of it, or by a chart's or an operator's
    label; what people wrote with names of kvpool.dev counts not.
    """
    return [
        f"{kind} {metadata.get('namespace', '')}/{metadata['name']}: {why}"
        for kind, thing in _everything(api, gateway=gateway)
        for metadata in [thing["metadata"]]
        for why in [_why(kind, metadata)]
        if why
    ]


def definitions(api: Api) -> list[str]:
    """Names of kvpool's CustomResourceDefinitions."""
    found = api.list(*DEFINITIONS)
    return sorted(one["metadata"]["name"] for one in found if one["spec"]["group"] == "kvpool.dev")


def _everything(api: Api, *, gateway: bool) -> Iterator[tuple[str, JsonObject]]:
    served = bool(definitions(api))
    kinds = [*((KVPOOL, kind) for kind in OWN if served), *OTHERS, *([ROUTES] if gateway else [])]
    for version, kind in kinds:
        for thing in api.list(version, kind):
            yield kind, thing


def _why(kind: str, metadata: JsonObject) -> str:
    if kind in OWN:
        return "a kind of kvpool's"
    finalizers = [name for name in metadata.get("finalizers", []) if name.startswith("kvpool.dev/")]
    if finalizers:
        return f"finalizers {finalizers}"
    found = metadata.get("labels", {})
    if found.get(labels.MANAGED_BY) == labels.MANAGER or found.get("app.kubernetes.io/name") == "kvpool":
        return f"labels {found}"
    writers = {entry.get("manager", "") for entry in metadata.get("managedFields", [])}
    ours = sorted(name for name in writers if name.startswith(MANAGERS))
    return f"written by {ours}" if ours else ""
