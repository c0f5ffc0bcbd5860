"""The keeper's pod: requests equal limits, so scheduler and kubelet see the unit's memory as taken.

It lives in the operator's namespace, where host paths may be mounted, whoever owns the pool, and is pinned to
its node by affinity, not by nodeName: the scheduler then checks that it fits. The operator makes it and a
chart upgrade never touches it, because an upgrade would empty the cache.
"""

from dataclasses import dataclass
from typing import Any

from kvpool.api import labels
from kvpool.api.tierbudget import Backend
from kvpool.model.decisions import KeeperSpec
from kvpool.rules.unit_folder import unit_directory_name

UNITS_FOLDER = "/var/lib/kvpool/units"
"""Where keepers see the agent's unit folders."""


@dataclass(frozen=True, slots=True)
class KeeperTemplate:
    """What the chart decides about keepers."""

    image: str
    namespace: str
    service_account: str
    host_units_folder: str
    """The agent's unit folders on the host."""
    user_id: int
    shared_memory_folder: str = ""
    """Where agents that may not mount keep memory units on the host; empty: agents may mount."""
    cpu: str = "500m"
    """Request and limit: equal ones make the pod Guaranteed. With a tenth of it a start takes 20 s."""
    priority_class: str = ""
    """Empty: the cluster's default."""


def keeper_manifest(keeper: KeeperSpec, template: KeeperTemplate) -> dict[str, Any]:
    """Return the pod for server-side creation."""
    media = _media(keeper, template)
    return {
        "metadata": {
            "name": keeper.name,
            "namespace": template.namespace,
            "labels": {
                labels.MANAGED_BY: labels.MANAGER,
                labels.COMPONENT: "keeper",
                labels.NODE: keeper.node,
                labels.POOL: keeper.pool.name,
                labels.POOL_NAMESPACE: keeper.pool.namespace,
                labels.GENERATION: str(keeper.unit.generation),
            },
            "annotations": {labels.UNIT: keeper.unit.name},
        },
        "spec": {
            "serviceAccountName": template.service_account,
            "automountServiceAccountToken": False,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 60,
            "hostNetwork": True,
            **({"priorityClassName": template.priority_class} if template.priority_class else {}),
            "affinity": _pinned_to(keeper.node),
            "tolerations": [{"operator": "Exists"}],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": template.user_id,
                "runAsGroup": template.user_id,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(keeper, template, media)],
            "volumes": [
                {
                    "name": "units",
                    "hostPath": {"path": template.host_units_folder, "type": "DirectoryOrCreate"},
                },
                *({"name": "medium", "hostPath": {"path": path, "type": "Directory"}} for path in media),
            ],
        },
    }


def _container(keeper: KeeperSpec, template: KeeperTemplate, media: list[str]) -> dict[str, Any]:
    folder = unit_directory_name(keeper.unit.name, keeper.unit.generation)
    resources = {"memory": str(keeper.memory_bytes), "cpu": template.cpu}
    return {
        "name": "keeper",
        "image": template.image,
        "command": ["kvpool-keeper"],
        "args": [f"--unit-dir={UNITS_FOLDER}/{folder}", "--address=$(HOST_ADDRESS)"],
        "env": [{"name": "HOST_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "units", "mountPath": UNITS_FOLDER, "mountPropagation": "HostToContainer"},
            *({"name": "medium", "mountPath": path} for path in media),
        ],
    }


def _pinned_to(node: str) -> dict[str, Any]:
    """Affinity to one node; by its name as a field, because labels can be changed."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _media(keeper: KeeperSpec, template: KeeperTemplate) -> list[str]:
    """Folders of the host that the unit's file may lie in; agent and keeper see them under one path."""
    if keeper.unit.backend is Backend.FILE:
        return [keeper.unit.path]
    return [template.shared_memory_folder] if template.shared_memory_folder else []
