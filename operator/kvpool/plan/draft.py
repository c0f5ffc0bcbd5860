"""A plan while it is being made: at most one write for each object, and a reason for every slot."""

from kvpool.api.remap import RemapKind, StageName
from kvpool.model.decisions import Action, Announce, Mark, Plan, Reason, Weights, Withheld
from kvpool.model.ids import DeviceRef, ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.engines import PodBook
from kvpool.plan.incidents import Incidents
from kvpool.plan.judgement import Judgement, judge
from kvpool.plan.moves import Moves
from kvpool.plan.share_book import ShareBook
from kvpool.plan.stock import Stock
from kvpool.rules.epochs import next_sequence, slot_epoch

SOON_SECONDS = 0.1


class Draft:
    """Collects decisions about one snapshot; what was decided earlier binds what is decided later."""

    def __init__(self, snapshot: Snapshot, now: Instant) -> None:
        self.snapshot = snapshot
        self.now = now
        self.judgement: Judgement = judge(snapshot, now)
        self.moves = Moves(snapshot)
        self.incidents = Incidents(snapshot)
        self.pods = PodBook(snapshot.pods)
        self.shares = ShareBook(snapshot, self.pods, now)
        self.stock = Stock(snapshot, self.judgement, self.pods)
        self.reserved: set[DeviceRef] = set(self.moves.reserved())
        self.blocked: dict[ObjectKey, Reason] = {}
        """Slots that should move and cannot."""
        self.opened: set[ObjectKey] = set()
        """Slots whose move this plan opens, or leaves to the next one."""
        self.served: set[ObjectKey] = set()
        """Slots whose move this plan ends as serving."""
        self.opened_in: dict[tuple[str | None, RemapKind], int] = {}
        """How many of them leave each Supernode, by kind."""
        self._sequence = next_sequence(snapshot)
        self._actions: list[Action] = []
        self._marks: list[Mark] = []
        self._withheld: list[Withheld] = []
        self._events: list[Announce] = []
        self._weights: list[Weights] = []
        self._explanations: dict[str, Reason] = {}
        self._nodes_written: set[str] = set()
        self._moments: list[float] = []

    def act(self, *actions: Action) -> None:
        """Decide writes."""
        self._actions.extend(actions)

    def act_on_node(self, node: str, action: Action) -> bool:
        """Decide a compare-and-swap of a KVNode, unless this plan has one: the next plan then does."""
        if node in self._nodes_written:
            return False
        self._nodes_written.add(node)
        self.act(action)
        return True

    def take_epoch(self) -> int:
        """Give out the next slot epoch of this leadership."""
        epoch = slot_epoch(self.snapshot.leadership.operator_epoch, self._sequence)
        self._sequence += 1
        return epoch

    def mark(self, remap: ObjectKey, stage: StageName, at: float | None = None) -> None:
        """Note that a stage is over since `at` (now by default), unless that was noted before."""
        if self.marked_at(remap, stage) is None:
            self._marks.append(Mark(remap, stage, self.now.monotonic_seconds if at is None else at))

    def marked_at(self, remap: ObjectKey, stage: StageName) -> float | None:
        """When a stage was first seen to be over, this plan's own sight included."""
        known = self.snapshot.marks.get(remap, {}).get(stage)
        fresh = (mark.at for mark in self._marks if mark.remap == remap and mark.stage is stage)
        return known if known is not None else next(fresh, None)

    def explain(self, what: str, reason: Reason) -> None:
        """Say why something happens, or does not."""
        self._explanations[what] = reason

    def block(self, slot: ObjectKey, reason: Reason) -> None:
        """Say that a slot should move and cannot."""
        self.blocked[slot] = reason
        self.explain(f"slot {slot}", reason)

    def put_off(self, slot: ObjectKey, reason: Reason) -> None:
        """Leave a slot to the next plan."""
        self.opened.add(slot)
        self.explain(f"slot {slot}", reason)
        self.look_again(self.now.monotonic_seconds + SOON_SECONDS)

    def withhold(self, withheld: Withheld) -> None:
        """Say what would have been done."""
        self._withheld.append(withheld)

    def announce(self, event: Announce) -> None:
        """Tell people, after the writes succeeded."""
        self._events.append(event)

    def route(self, weights: Weights) -> None:
        """Decide the weights of one group and role."""
        self._weights.append(weights)

    def look_again(self, moment: float) -> None:
        """Ask for another plan at `moment` (monotonic seconds)."""
        self._moments.append(moment)

    def plan(self) -> Plan:
        """Return what was decided."""
        later = [
            moment
            for moment in (*self._moments, *self.judgement.moments())
            if moment > self.now.monotonic_seconds
        ]
        return Plan(
            actions=tuple(self._actions),
            weights=tuple(self._weights),
            marks=tuple(self._marks),
            withheld=tuple(self._withheld),
            events=tuple(self._events),
            requeue_at=min(later, default=None),
            explanations=tuple(self._explanations.items()),
        )
