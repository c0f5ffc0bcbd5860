"""The newest plan of one node and its numbers."""

from __future__ import annotations

from dataclasses import dataclass

from kvpool.model.nodeplan import NodePlanData
from kvpool.wire.convert_operator import PlanData

RESEND_SECONDS = 5.0
"""A plan that is not applied so long after it was sent is sent again."""


@dataclass(slots=True)
class NewestPlan:
    """A node's plan, if it has one: a node without a plan is told nothing, never to hold nothing.

    Both numbers grow within one leadership, and above what the node applied under earlier ones; the roster's
    is the plan revision that changed it last. An applied revision equal to `revision` means this plan.
    """

    plan: NodePlanData | None = None
    revision: int = 0
    roster_revision: int = 0
    _sent_at: float | None = None
    _sent_revision: int = 0
    _applied_before: int = 0

    def replace(self, plan: NodePlanData) -> bool:
        """Take the newest plan; False when it says what the present one says."""
        if plan == self.plan:
            return False
        same_roster = self.plan is not None and self.plan.roster == plan.roster
        self.plan = plan
        self.revision = max(self.revision, self._applied_before) + 1
        if not same_roster:
            self.roster_revision = self.revision
        self._sent_at = None
        return True

    def stream_opened(self, applied_revision: int) -> None:
        """An agent said Hello that applied `applied_revision`, which may be of an earlier leader."""
        self._sent_at = None
        if applied_revision <= self._sent_revision:
            return
        # The number is not one of ours: whatever we send has to be told apart from it.
        self._applied_before = applied_revision
        if self.plan is not None:
            self.revision = self.roster_revision = max(self.revision, applied_revision) + 1

    def message(self, operator_epoch: int) -> PlanData | None:
        """What to send, under the present epoch; None without a plan."""
        if self.plan is None:
            return None
        return PlanData(operator_epoch, self.revision, self.roster_revision, self.plan)

    def sent(self, revision: int, now: float) -> None:
        """This revision was sent at `now` (monotonic seconds)."""
        self._sent_revision = max(self._sent_revision, revision)
        if revision == self.revision:
            self._sent_at = now

    def is_overdue(self, applied_revision: int, now: float) -> bool:
        """Whether the plan was sent on this stream, some time ago, and is not applied."""
        sent = self._sent_at is not None and now - self._sent_at >= RESEND_SECONDS
        return sent and applied_revision < self.revision
