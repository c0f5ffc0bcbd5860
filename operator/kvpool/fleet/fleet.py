"""The agents of all nodes, as the rest of the operator sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kvpool.fleet.metrics import FleetMetrics
from kvpool.fleet.settings import FleetSettings
from kvpool.model.nodeplan import NodePlanData
from kvpool.model.observations import AgentView


@dataclass(frozen=True, slots=True)
class FleetCallbacks:
    """Called inside the event loop; they enqueue and return, and must not raise."""

    on_change: Callable[[str], None]
    """What is known of this node changed (not called for a mere renewal)."""
    on_higher_epoch: Callable[[int], None]
    """An agent accepted this operator epoch, above ours: step up beyond it (`set_leader`) before acting.
    Until then that agent gets neither plans nor grants."""


class Fleet:
    """Serves agents. All methods belong to one event loop; times are `time.monotonic()` seconds.

    Every replica enrols and listens; only between `set_leader(epoch)` and `set_leader(None)` do agents
    get more than NotLeader.
    """

    def __init__(
        self,
        settings: FleetSettings,
        access: ClusterAccess,
        callbacks: FleetCallbacks,
        metrics: FleetMetrics,
    ) -> None: ...

    async def start(self) -> None:
        """Make or load the authority and listen. Raises ApiError, AuthorityError or OSError."""

    async def stop(self) -> None:
        """End all streams and stop listening, within a few seconds."""

    @property
    def agent_port(self) -> int:
        """The bound port for agent streams."""

    @property
    def enrolment_port(self) -> int:
        """The bound port for enrolment."""

    def set_leader(self, operator_epoch: int | None, leader: str = "") -> None:
        """Lead under this epoch, step up to a higher one, or (None) stop; `leader` is told to agents then.

        Stopping forgets all views, plans and lease terms: they belong to one leadership.
        """

    def views(self) -> Mapping[str, AgentView]:
        """All nodes whose agent said Hello to this leader, connected or not; a copy that never changes."""

    def set_plan(self, node: str, plan: NodePlanData) -> int:
        """Make this the newest plan of the node; returns its revision. The same content keeps its revision."""

    def plan_revision(self, node: str) -> int:
        """Revision of the node's newest plan, to compare with AgentView.applied_revision; 0 for none.

        A Hello that names a higher applied revision raises it.
        """

    def set_lease_terms(self, node: str, duration_seconds: float, max_skew_seconds: float, strict: bool) -> None:
        """Grant under these terms from the next Renew on."""

    def forget(self, node: str) -> None:
        """Drop everything known of a node that is no longer one of the cluster; ends its stream."""
