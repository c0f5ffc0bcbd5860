"""Which pods the workloads of groups select."""

from collections.abc import Iterable

from kvpool.api.common import LabelSelector
from kvpool.api.pdgroup import PDGroup
from kvpool.cluster.errors import ApiError
from kvpool.cluster.rest import Rest
from kvpool.cluster.scales import workload_selector
from kvpool.plan.engines import roles_of, workload_key

Selectors = dict[str, LabelSelector | None]
"""`namespace/Kind/name` to what selects its pods; None without a scale that states a selector."""


async def read_selectors(rest: Rest, groups: Iterable[PDGroup]) -> Selectors:
    """Ask for every workload that groups name; one that cannot be asked is left out."""
    found: Selectors = {}
    for group in groups:
        for _, spec in roles_of(group):
            if spec.workload_ref is None:
                continue
            key = workload_key(group, spec)
            try:
                found[key] = await workload_selector(rest, group.metadata.namespace, spec.workload_ref)
            except (
                ApiError
            ):  # a user without the operator's right to scales: what the operator sees is unknown
                continue
    return found
