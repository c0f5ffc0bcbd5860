"""The queue of the planning loops: nothing is lost, nothing runs twice at once, urgent goes first."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kvpool.control.work_queue import DueQueue, Lane

LANES = {"u1": Lane.URGENT, "u2": Lane.URGENT, "r1": Lane.ROUTINE, "r2": Lane.ROUTINE}
keys = st.sampled_from(sorted(LANES))


class Queue(RuleBasedStateMachine):
    """Adds, takes and ends work in any order, and holds the queue to its word."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: DueQueue[str] = DueQueue()
        self.now = 0.0
        self.running: set[str] = set()
        self.must: dict[str, float] = {}
        """By when each key was asked for, since it was last taken."""
        self.may: dict[str, set[float]] = {key: set() for key in LANES}
        """All moments asked for and not past at the last taking."""

    def ask(self, key: str, due: float) -> None:
        self.must[key] = min(due, self.must.get(key, due))
        self.may[key].add(due)

    def due(self) -> set[str]:
        return {key for key, due in self.must.items() if due <= self.now} - self.running

    @rule(key=keys)
    def add(self, key: str) -> None:
        self.queue.add(key, LANES[key], self.now)
        self.ask(key, self.now)

    @rule(key=keys, delay=st.sampled_from([0.0, 1.0, 2.0, 5.0]))
    def add_at(self, key: str, delay: float) -> None:
        self.queue.add_at(key, LANES[key], self.now + delay)
        self.ask(key, self.now + delay)

    @rule(seconds=st.sampled_from([0.5, 1.0, 3.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def take(self) -> None:
        due = self.due()
        key = self.queue.take(self.now)
        if key is None:
            assert not due, f"{due} wait and nothing is taken"
            return
        assert key not in self.running
        assert any(moment <= self.now for moment in self.may[key]), f"nobody asked for {key}"
        urgent = {other for other in due if LANES[other] is Lane.URGENT}
        assert LANES[key] is Lane.URGENT or not urgent, f"{key} went before {urgent}"
        self.running.add(key)
        self.must.pop(key, None)
        self.may[key] = {moment for moment in self.may[key] if moment > self.now}

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.running.discard(key)
        self.queue.done(key, self.now)

    @invariant()
    def is_bounded_by_its_keys(self) -> None:
        assert self.queue.depth() <= len(LANES)
        assert 0.0 <= self.queue.oldest_age_seconds(self.now) <= self.now


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_key_added_while_it_runs_runs_once_more_and_not_beside_itself() -> None:
    queue: DueQueue[str] = DueQueue()
    queue.add("a", Lane.URGENT, 0.0)
    assert queue.take(0.0) == "a"
    queue.add("a", Lane.URGENT, 1.0)
    queue.add("a", Lane.URGENT, 1.0)
    assert queue.take(1.0) is None
    queue.done("a", 2.0)
    assert queue.take(2.0) == "a"
    queue.done("a", 3.0)
    assert queue.take(3.0) is None


def test_the_age_is_that_of_the_first_asking() -> None:
    queue: DueQueue[str] = DueQueue()
    queue.add("a", Lane.ROUTINE, 1.0)
    queue.add("a", Lane.URGENT, 5.0)
    assert queue.oldest_age_seconds(6.0) == 5.0
