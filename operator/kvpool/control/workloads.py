"""Finds a workload's pods through its scale sub-resource; a kind without one is said to have none."""

from collections.abc import Callable, Iterable, Mapping

from kvpool.api.common import LabelSelector
from kvpool.api.pdgroup import PDGroup, WorkloadRef
from kvpool.cluster.errors import ApiError, Terminal
from kvpool.cluster.rest import Rest
from kvpool.cluster.scales import workload_selector
from kvpool.plan.engines import roles_of, workload_key


class Workloads:
    """Remembers the selector of every workload that a PDGroup names; a failed look leaves it unknown."""

    def __init__(self, rest: Rest, on_change: Callable[[], None]) -> None:
        self._rest = rest
        self._on_change = on_change
        self._selectors: dict[str, LabelSelector | None] = {}

    def selectors(self) -> Mapping[str, LabelSelector | None]:
        """Selectors by workload; None for one without a scale that states a selector."""
        return dict(self._selectors)

    async def look(self, groups: Iterable[PDGroup]) -> None:
        """Ask for the scale of every workload named."""
        wanted: dict[str, tuple[str, WorkloadRef]] = {}
        for group in groups:
            for _, spec in roles_of(group):
                if spec.workload_ref is not None:
                    wanted[workload_key(group, spec)] = (group.metadata.namespace, spec.workload_ref)
        before = dict(self._selectors)
        for key in [key for key in self._selectors if key not in wanted]:
            del self._selectors[key]
        for key, (namespace, ref) in wanted.items():
            try:
                self._selectors[key] = await workload_selector(self._rest, namespace, ref)
            except Terminal:  # not one of the kinds that the operator may read: it can never follow that one
                self._selectors[key] = None
            except ApiError:
                continue
        if before != self._selectors:
            self._on_change()
