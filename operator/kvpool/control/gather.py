"""Gathers the frozen Snapshot that a planning step works on: everything known, and nothing decided."""

from collections.abc import Callable, Mapping

import structlog

from kvpool.api import labels
from kvpool.api.common import Mode
from kvpool.control import clock
from kvpool.control.facts import Facts
from kvpool.control.marks import Marks
from kvpool.control.route_writer import RouteWriter
from kvpool.control.store_poller import StorePoller
from kvpool.control.workloads import Workloads
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import AgentView
from kvpool.model.snapshot import Leadership, Snapshot
from kvpool.rules.epochs import MOST_EPOCHS_AHEAD, believed
from kvpool.world.holders import with_holders

_log = structlog.get_logger()


class Gatherer:
    """Reads the fact store, the agents' views, the stores, the outputs and this leadership's memory."""

    def __init__(
        self,
        facts: Facts,
        views: Callable[[], Mapping[str, AgentView]],
        stores: StorePoller,
        routes: RouteWriter,
        marks: Marks,
        workloads: Workloads,
        *,
        mode_cap: Mode,
        leadership: Callable[[], Leadership],
    ) -> None:
        self._facts = facts
        self._views = views
        self._stores = stores
        self._routes = routes
        self._marks = marks
        self._workloads = workloads
        self._mode_cap = mode_cap
        self._leadership = leadership
        self._disbelieved: frozenset[tuple[str, ObjectKey]] = frozenset()

    def snapshot(self) -> Snapshot:
        """Everything known now and believed."""
        facts = self._facts
        pods = facts.pods()
        known = Snapshot(
            leadership=self._leadership(),
            mode_cap=self._mode_cap,
            paused=facts.paused(),
            uninstall=facts.uninstall(),
            budgets=facts.budgets(),
            pools=facts.pools(),
            groups=facts.groups(),
            supernodes=facts.supernodes(),
            kvnodes=facts.kvnodes(),
            slots=facts.slots(),
            remaps=facts.remaps(),
            nodes=facts.nodes(),
            pods=pods,
            agents=with_holders(self._views(), pods, clock.now()),
            stores=self._stores.views(),
            acks=self._routes.acks(),
            output_errors=self._routes.errors(),
            marks=self._marks.view(),
            unreadable=facts.unreadable(),
            workload_selectors=self._workloads.selectors(),
        )
        snapshot = believed(known)
        self._say_disbelieved(snapshot.unreadable - known.unreadable, snapshot.leadership.operator_epoch)
        return snapshot

    def _say_disbelieved(self, disbelieved: frozenset[tuple[str, ObjectKey]], mine: int) -> None:
        for kind, key in sorted(disbelieved - self._disbelieved):
            name = str(key) if key.namespace else key.name
            reason = f"its operator epoch is more than {MOST_EPOCHS_AHEAD} above {mine}, this leader's own"
            advice = (
                f"delete it; or, when all have it, write it into {labels.OPERATOR_EPOCH} of the leader Lease"
            )
            _log.warning("object left out", kind=kind, name=name, reason=reason, advice=advice)
        self._disbelieved = disbelieved
