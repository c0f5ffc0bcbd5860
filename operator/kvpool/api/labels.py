"""Labels, annotations, finalizers and field managers that kvpool writes; nothing else spells them out."""

from typing import Final

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "kvpool"
COMPONENT: Final = "app.kubernetes.io/component"

POOL: Final = "kvpool.dev/pool"
POOL_NAMESPACE: Final = "kvpool.dev/pool-namespace"
NODE: Final = "kvpool.dev/node"
UNIT: Final = "kvpool.dev/unit"
GENERATION: Final = "kvpool.dev/unit-generation"
PDGROUP: Final = "kvpool.dev/pdgroup"
ROLE: Final = "kvpool.dev/role"
SLOT: Final = "kvpool.dev/slot"

PAUSED: Final = "kvpool.dev/paused"
"""Annotation on any people's object: no new actions for it."""
PAUSE_CONFIG_MAP: Final = "kvpool-pause"
"""In the operator's namespace: while it exists with `paused: "true"`, no new action starts anywhere."""
UNINSTALL_CONFIG_MAP: Final = "kvpool-uninstall"
"""In the operator's namespace: while it exists with `drain: "true"`, everything is given back."""
UNINSTALL_DRAIN: Final = "drain"
UNINSTALL_RETIRED: Final = "retired"
"""Key of that ConfigMap that the operator writes: nodes, with commas, whose agent keeps nothing any more."""

OPERATOR_EPOCH: Final = "kvpool.dev/operator-epoch"
"""Annotation on the leader Lease: the epoch of the newest leadership."""
ROUTE_REVISION: Final = "kvpool.dev/route-revision"

BOARD: Final = "kvpool.dev/board"
RACK: Final = "kvpool.dev/rack"

FENCE_FINALIZER: Final = "kvpool.dev/fence"

ROUTING_MANAGER: Final = "kvpool-routing"
"""Field manager of what router outputs write; on pods with a digest of the output behind it."""

AGENT_AUDIENCE: Final = "kvpool"
