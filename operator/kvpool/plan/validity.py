"""Whether a PDGroup makes sense among the other objects: its pool, its workloads, and whose pods they are."""

from kvpool.api.pdgroup import PDGroup
from kvpool.model.decisions import Reason
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot
from kvpool.plan.domains import group_domain_unknown, supernode_of, supernode_of_group
from kvpool.plan.engines import engine_pods, is_engine_pod, roles_of, workload_key
from kvpool.plan.sizes import listed
from kvpool.plan.spares import device_ids


def why_not_valid(snapshot: Snapshot, group: PDGroup) -> Reason | None:
    """Return why nothing new may be decided for the group; None when it makes sense."""
    return (
        _no_role(group)
        or group_domain_unknown(snapshot, group)
        or _pool_missing(snapshot, group)
        or _workload_unknown(snapshot, group)
        or _pods_of_another(snapshot, group)
    )


def _no_role(group: PDGroup) -> Reason | None:
    if roles_of(group):
        return None
    return Reason("NoRole", "neither spec.prefill nor spec.decode is given: nothing to route to")


def _pool_missing(snapshot: Snapshot, group: PDGroup) -> Reason | None:
    key = ObjectKey(group.metadata.namespace, group.spec.pool_ref.name)
    if key in snapshot.pools:
        return None
    return Reason(
        "PoolNotFound", f"spec.poolRef names KVPool {key}, which does not exist: create it or rename"
    )


def _workload_unknown(snapshot: Snapshot, group: PDGroup) -> Reason | None:
    """A workload whose scale sub-resource could not be read; one that was not asked yet says nothing."""
    for role, spec in roles_of(group):
        key = workload_key(group, spec)
        field = f"spec.{role.value.lower()}"
        if spec.pod_selector is None and not key:
            text = f"{field} gives neither workloadRef nor podSelector: its pods cannot be found"
            return Reason("NoSelector", text)
        known = snapshot.workload_selectors
        if spec.pod_selector is None and key in known and known[key] is None:
            text = (
                f"{field}.workloadRef {key} has no scale sub-resource with a selector that kvpool may read: "
                "give podSelector"
            )
            return Reason("WorkloadNotScalable", text)
    return None


def _pods_of_another(snapshot: Snapshot, group: PDGroup) -> Reason | None:
    """The older group keeps pods that two groups select; creation time, then name, decides."""
    mine = {pod.uid: pod for _, spec in roles_of(group) for pod in engine_pods(snapshot, group, spec)}
    for key, other in sorted(snapshot.groups.items()):
        if key.namespace != group.metadata.namespace or _age_key(other) >= _age_key(group):
            continue
        roles = roles_of(other)
        shared = [
            pod.key.name
            for pod in mine.values()
            if any(is_engine_pod(snapshot, other, spec, pod) for _, spec in roles)
        ]
        if shared:
            text = f"{len(shared)} of {len(mine)} pods ({listed(shared)}) belong to the older PDGroup {key}"
            return Reason("PodsClaimedByOther", f"{text}: narrow a selector")
    return None


def more_slots_than_devices(snapshot: Snapshot, group: PDGroup) -> Reason | None:
    """Compare all that the group asks for with all devices of the nodes it may use.

    None while any agent of those is unheard: nothing is concluded from silence.
    """
    supernode = supernode_of_group(snapshot, group)
    nodes = [
        node for node in snapshot.kvnodes if supernode is None or supernode_of(snapshot, node) is supernode
    ]
    if any(node not in snapshot.agents for node in nodes):
        return None
    counts = [
        (len(engine_pods(snapshot, group, spec)) if spec.instances is None else spec.instances, spec)
        for _, spec in roles_of(group)
    ]
    slots = sum(count for count, _ in counts)
    wanted = sum(count * spec.devices_per_pod for count, spec in counts)
    have = sum(len(device_ids(snapshot.agents[node])) for node in nodes)
    if wanted <= have:
        return None
    text = f"{slots} slots need {wanted} devices, {len(nodes)} nodes have {have}: ask for fewer instances"
    return Reason("MoreSlotsThanDevices", text)


def _age_key(group: PDGroup) -> tuple[str, str]:
    return (group.metadata.creation_timestamp or "", group.metadata.name)
