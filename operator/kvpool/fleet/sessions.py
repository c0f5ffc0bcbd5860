"""One session for each node: which stream counts, what its agent said, and what it is to be told.

Knows neither gRPC nor the API server; all times are handed in (monotonic seconds).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kvpool.fleet import leases, views
from kvpool.fleet.metrics import FleetMetrics
from kvpool.fleet.outbox import Outbox
from kvpool.fleet.plans import NewestPlan
from kvpool.fleet.refusals import Reason, RefusedError
from kvpool.model.nodeplan import LeaseTerms, NodePlanData
from kvpool.model.observations import AgentView
from kvpool.rules.epochs import MOST_EPOCHS_AHEAD, is_believable
from kvpool.wire.convert_agent import (
    AgentMessage,
    EvidenceData,
    HelloData,
    LeavingData,
    RenewData,
)
from kvpool.wire.convert_bounds import MalformedError
from kvpool.wire.convert_operator import (
    GrantData,
    NotLeaderData,
    OperatorMessage,
    PlanData,
    WelcomeData,
)
from kvpool.wire.convert_report import ReportData


@dataclass(frozen=True, slots=True)
class FleetCallbacks:
    """Called inside the event loop; they enqueue and return, and must not raise."""

    on_change: Callable[[str], None]
    """What is known of this node changed (not called for a mere renewal)."""
    on_higher_epoch: Callable[[int], None]
    """An agent accepted this operator epoch, above ours: step up beyond it (`set_leader`) before acting.
    Until then that agent gets neither plans nor grants."""


@dataclass(slots=True, eq=False)
class Session:
    """One accepted stream."""

    node: str
    hello_epoch: int
    outbox: Outbox
    welcomed: bool = False
    """Whether our epoch is one that the agent accepts."""


@dataclass(slots=True)
class _Node:
    terms: LeaseTerms
    newest: NewestPlan = field(default_factory=NewestPlan)
    view: AgentView | None = None
    session: Session | None = None


class Sessions:
    """All nodes of one leadership after another."""

    def __init__(self, default_terms: LeaseTerms, callbacks: FleetCallbacks, metrics: FleetMetrics) -> None:
        self._default_terms = default_terms
        self._callbacks = callbacks
        self._metrics = metrics
        self._epoch: int | None = None
        self._leader = ""
        self._nodes: dict[str, _Node] = {}

    # Leadership

    @property
    def leading(self) -> bool:
        """Whether agents get more than NotLeader."""
        return self._epoch is not None

    @property
    def not_leader(self) -> NotLeaderData:
        """What a standby says."""
        return NotLeaderData(self._leader)

    def lead(self, operator_epoch: int) -> None:
        """Lead under this epoch, or step up to it. Raises ValueError for one below the present."""
        if self._epoch is not None and operator_epoch < self._epoch:
            raise ValueError(f"operator epoch {operator_epoch} is below {self._epoch}, which is in force")
        if operator_epoch == self._epoch:
            return
        self._epoch = operator_epoch
        for node in self._nodes.values():
            self._welcome(node)

    def stand_by(self, leader: str) -> None:
        """Stop leading: every stream ends with NotLeader, and all that this leadership knew is forgotten."""
        self._epoch, self._leader = None, leader
        for node in self._nodes.values():
            if node.session is not None:
                node.session.outbox.end(self.not_leader)
        self._nodes.clear()

    # What the operator wants

    def views(self) -> dict[str, AgentView]:
        """All nodes that said Hello, as they are known now."""
        return {name: node.view for name, node in self._nodes.items() if node.view is not None}

    def set_plan(self, name: str, plan: NodePlanData) -> int:
        """Make this the newest plan of the node; returns its revision. Raises ValueError when not leading."""
        if self._epoch is None:
            raise ValueError(f"a plan for node {name} can only be set while leading")
        node = self._node(name)
        if node.newest.replace(plan):
            changed_terms, node.terms = node.terms != plan.lease, plan.lease
            if node.view is not None:
                node.view = _under_plan(node.view, node.newest)
            if changed_terms:
                self._welcome(node)
            else:
                self._send_plan(node)
        return node.newest.revision

    def forget(self, name: str) -> None:
        """Drop all that is known of a node, and end its stream."""
        node = self._nodes.pop(name, None)
        if node is not None and node.session is not None:
            text = f"node {name} is none of the cluster's any more"
            node.session.outbox.end(RefusedError(Reason.FORGOTTEN, text))

    # What agents say

    def open(self, certified_node: str, hello: HelloData, now: float) -> Session:
        """Accept a stream.

        Raises:
            RefusedError: WRONG_NODE, OLD_INCARNATION.
            MalformedError: for an operator epoch that no leader can have reached.
        """
        if hello.node_name != certified_node:
            text = f"hello.node_name is {hello.node_name!r}, the certificate is for node {certified_node!r}"
            raise RefusedError(Reason.WRONG_NODE, text)
        if self._epoch is not None and not is_believable(hello.highest_operator_epoch, self._epoch):
            text = (
                f"{hello.highest_operator_epoch} is more than {MOST_EPOCHS_AHEAD} above {self._epoch}, the "
            )
            text += "leader's own: check the agent of the node, whose journal or credentials others may write"
            raise MalformedError("hello.highest_operator_epoch", text)
        node = self._node(certified_node)
        _check_incarnation(node, hello, now)
        if node.session is not None:
            text = f"a newer stream of node {certified_node} replaced this one"
            node.session.outbox.end(RefusedError(Reason.REPLACED, text))
        node.session = Session(certified_node, hello.highest_operator_epoch, Outbox(self._metrics.superseded))
        node.newest.stream_opened(hello.report.applied_revision)
        lease = node.view.lease if node.view is not None else leases.never_granted(node.terms)
        view = views.greeted(hello, node.view, lease, now)
        node.view = _under_plan(view, node.newest)
        self._welcome(node)
        if self._epoch is not None and hello.highest_operator_epoch > self._epoch:
            self._callbacks.on_higher_epoch(hello.highest_operator_epoch)
        self._callbacks.on_change(certified_node)
        return node.session

    def receive(self, session: Session, message: AgentMessage, now: float) -> None:
        """Take in a message of an open stream. Raises MalformedError for one that may not come now."""
        node = self._current(session)
        if node is None or node.view is None:
            return  # a newer stream counts; this one is about to end
        before = node.view
        match message:
            case HelloData():
                raise MalformedError("hello", "may only be the first message of a stream")
            case RenewData():
                node.view = views.renewed(before, message)
                self._grant(node, message.seq)
            case ReportData():
                node.view = views.reported(before, message)
            case EvidenceData():
                node.view = views.accused(before, message)
            case LeavingData():
                node.view = views.leaving(before, message, now)
        if node.newest.is_overdue(node.view.applied_revision, now):
            self._send_plan(node)
        if not isinstance(message, RenewData) or not views.says_the_same(before.peers, node.view.peers):
            self._callbacks.on_change(session.node)

    def sending(self, session: Session, message: OperatorMessage, now: float) -> None:
        """The message goes out now: from here on a Grant counts, and a plan is expected to be applied."""
        node = self._current(session)
        if node is None or node.view is None:
            return
        if isinstance(message, GrantData):
            terms = replace(node.terms, duration_seconds=message.ttl_seconds)
            node.view = replace(node.view, lease=leases.granted(node.view.lease, terms, now))
        elif isinstance(message, PlanData):
            node.newest.sent(message.revision, now)

    def closed(self, session: Session) -> None:
        """The stream ended; what was known stays known."""
        node = self._current(session)
        if node is None or node.view is None:
            return
        node.session = None
        node.view = replace(node.view, connected=False)
        self._callbacks.on_change(session.node)

    def idle_seconds(self, session: Session) -> float:
        """How long the stream may be silent: three leases, as agents renew several times in each."""
        node = self._nodes.get(session.node)
        return 3 * (node.terms if node is not None else self._default_terms).duration_seconds

    def _node(self, name: str) -> _Node:
        return self._nodes.setdefault(name, _Node(self._default_terms))

    def _current(self, session: Session) -> _Node | None:
        node = self._nodes.get(session.node)
        return node if node is not None and node.session is session else None

    def _welcome(self, node: _Node) -> None:
        """Tell the agent epoch and terms, then its plan, unless it would refuse our epoch."""
        session = node.session
        if session is None or self._epoch is None or session.hello_epoch > self._epoch:
            return
        session.welcomed = True
        plan = node.newest.plan
        roster = plan.roster if plan is not None else ()
        session.outbox.put(WelcomeData(self._epoch, node.terms, roster, node.newest.roster_revision))
        self._send_plan(node)

    def _send_plan(self, node: _Node) -> None:
        if node.session is None or not node.session.welcomed or self._epoch is None:
            return
        message = node.newest.message(self._epoch)
        if message is not None:
            node.session.outbox.put(message)

    def _grant(self, node: _Node, seq: int) -> None:
        if node.session is None or not node.session.welcomed or self._epoch is None:
            return
        node.session.outbox.put(GrantData(seq, node.terms.duration_seconds, self._epoch))


def _under_plan(view: AgentView, newest: NewestPlan) -> AgentView:
    """Return the view with what its newest plan is and gives back; revision 0 before the first one."""
    if newest.plan is None:
        return replace(view, plan_revision=0, plan_releases=frozenset())
    released = frozenset((unit.name, unit.generation) for unit in newest.plan.units if unit.release != "None")
    return replace(view, plan_revision=newest.revision, plan_releases=released)


def _check_incarnation(node: _Node, hello: HelloData, now: float) -> None:
    """Refuse what is left of an earlier agent while its successor is there.

    Another boot id, or a successor whose lease is over, may have lost the count: then the newest stream wins.
    """
    known = node.view
    if known is None or known.boot_id != hello.boot_id or known.incarnation <= hello.incarnation:
        return
    expires_at = known.lease.expires_at
    if node.session is not None or (expires_at is not None and now < expires_at):
        text = f"incarnation {hello.incarnation} comes after incarnation {known.incarnation} of the same boot"
        raise RefusedError(Reason.OLD_INCARNATION, text)
