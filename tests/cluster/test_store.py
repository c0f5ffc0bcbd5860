"""The fact store: newest state wins, in whatever order the news arrives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.cluster.resources import CONFIG_MAPS, KV_NODES, PODS, Obj
from kvpool.cluster.store import EventType, FactStore, Identity, Key, Registration

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


def pod(version: int | str, *, uid: str = "u", name: str = "p", **metadata: object) -> Obj:
    return {
        "metadata": {"namespace": "a", "name": name, "uid": uid, "resourceVersion": str(version), **metadata}
    }


def version_of(obj: Obj) -> str:
    return str(obj["metadata"]["resourceVersion"])


class Watched:
    """A store of pods that keeps their resourceVersion, and the keys its subscriber was told."""

    def __init__(self) -> None:
        self.store = FactStore()
        self.pods: Registration[str] = self.store.register(PODS, version_of)
        self.told: list[Key] = []
        self.unsubscribe = self.store.subscribe(self.told.append)

    def now(self, name: str = "p") -> str | None:
        fact = self.store.get(self.pods, name, "a")
        return fact.value if fact is not None else None


def test_a_newer_state_replaces_an_older_one_and_subscribers_get_the_key() -> None:
    watched = Watched()
    assert watched.store.observe(PODS, ADDED, pod(9))
    assert watched.store.observe(PODS, MODIFIED, pod(10))
    assert watched.now() == "10"
    assert watched.told == [Key(PODS, "a", "p")] * 2


def test_a_late_event_does_not_set_the_answer_of_our_write_back() -> None:
    watched = Watched()
    watched.store.absorb(PODS, pod(10))
    assert not watched.store.observe(PODS, MODIFIED, pod(9))
    assert not watched.store.observe(PODS, MODIFIED, pod(10))
    assert watched.now() == "10"
    assert len(watched.told) == 1


def test_a_late_answer_does_not_bring_a_deleted_object_back() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(9))
    watched.store.observe(PODS, DELETED, pod(11))
    assert not watched.store.absorb(PODS, pod(10))
    assert watched.now() is None


def test_a_late_deletion_of_the_former_incarnation_leaves_the_new_one() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(9, uid="old"))
    watched.store.absorb(PODS, pod(12, uid="new"))
    assert not watched.store.observe(PODS, DELETED, pod(11, uid="old"))
    assert not watched.store.observe(PODS, MODIFIED, pod(10, uid="old"))
    assert watched.now() == "12"


def test_a_late_answer_of_the_former_incarnation_stays_out_after_the_new_one_went_too() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(9, uid="old"))
    watched.store.absorb(PODS, pod(12, uid="new"))
    watched.store.observe(PODS, DELETED, pod(13, uid="new"))
    assert not watched.store.absorb(PODS, pod(10, uid="old"))
    assert watched.now() is None


def test_an_object_that_left_the_selection_may_come_back() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(9))
    watched.store.observe(PODS, DELETED, pod(10))
    assert watched.store.observe(PODS, ADDED, pod(11))
    assert watched.now() == "11"


def test_the_answer_that_takes_the_last_finalizer_off_removes_the_fact() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(9, finalizers=["f"], deletionTimestamp="t"))
    assert watched.now() == "9"
    assert watched.store.absorb(PODS, pod(10, deletionTimestamp="t"))
    assert watched.now() is None


def test_the_answer_of_a_pod_in_its_grace_period_keeps_the_fact() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(9))
    watched.store.absorb(PODS, pod(10, deletionTimestamp="t", deletionGracePeriodSeconds=30))
    assert watched.now() == "10"


def test_a_list_drops_what_it_does_not_show_unless_that_is_newer() -> None:
    watched = Watched()
    for version, name in ((3, "gone"), (4, "kept"), (20, "made-since")):
        watched.store.observe(PODS, ADDED, pod(version, name=name, uid=name))
    watched.told.clear()

    assert watched.store.prune(PODS, [Identity("a", "kept", "kept")], "10", None) == 1

    assert watched.now("gone") is None
    assert watched.now("kept") == "4"
    assert watched.now("made-since") == "20"
    assert watched.told == [Key(PODS, "a", "gone")]


def test_a_list_of_one_namespace_says_nothing_of_others() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(3))
    assert watched.store.prune(PODS, [], "10", "b") == 0
    assert watched.store.prune(PODS, [], "10", "a") == 1


def test_a_list_of_one_object_says_nothing_of_others() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(3))
    assert watched.store.prune(PODS, [], "10", "a", "another") == 0
    assert watched.store.prune(PODS, [], "10", "a", "p") == 1


def test_a_list_drops_an_incarnation_of_the_same_name() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod(3, uid="old"))
    assert watched.store.prune(PODS, [Identity("a", "p", "new")], "10", None) == 1


def test_versions_are_compared_as_numbers_and_not_as_text() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod("99"))
    assert watched.store.observe(PODS, MODIFIED, pod("100"))


def test_versions_without_an_order_always_count_as_news() -> None:
    watched = Watched()
    watched.store.observe(PODS, ADDED, pod("x9"))
    assert watched.store.observe(PODS, MODIFIED, pod("x1"))
    assert not watched.store.observe(PODS, MODIFIED, pod("x1"))


def test_raw_objects_are_kept_on_wish_and_without_managed_fields() -> None:
    store = FactStore()
    nodes = store.register(KV_NODES, version_of, keep_raw=True)
    metadata = {"name": "n", "uid": "u", "resourceVersion": "1", "managedFields": [{}], "labels": {"a": "b"}}
    store.observe(KV_NODES, ADDED, {"metadata": metadata, "spec": {"x": 1}})
    fact = store.get(nodes, "n")
    assert fact is not None
    assert fact.raw == {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}},
        "spec": {"x": 1},
    }


def test_an_ended_subscription_is_told_nothing() -> None:
    watched = Watched()
    watched.unsubscribe()
    watched.store.observe(PODS, ADDED, pod(1))
    assert watched.told == []


def test_a_resource_is_registered_once_and_before_it_is_fed() -> None:
    watched = Watched()
    with pytest.raises(ValueError, match="pods is registered already"):
        watched.store.register(PODS, version_of)
    with pytest.raises(KeyError):
        watched.store.observe(CONFIG_MAPS, ADDED, pod(1))


def test_the_registration_counts_and_iterates() -> None:
    watched = Watched()
    for name in "abc":
        watched.store.observe(PODS, ADDED, pod(1, name=name, uid=name))
    assert watched.store.count(PODS) == 3
    assert {fact.key.name for fact in watched.store.facts(watched.pods)} == {"a", "b", "c"}


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[EventType, Obj]]:
    """What really happened to one name: incarnations created, changed and deleted, as the watch tells it."""
    told: list[tuple[EventType, Obj]] = []
    version = 1
    for incarnation in range(draw(st.integers(1, 3))):
        uid = f"u{incarnation}"
        for step in range(draw(st.integers(1, 4))):
            told.append((MODIFIED if step else ADDED, pod(version, uid=uid)))
            version += draw(st.integers(1, 3))
        told.append((DELETED, pod(version, uid=uid)))
        version += 1
    return told if draw(st.booleans()) else told[:-1]


@given(histories(), st.data())
def test_late_answers_to_our_writes_never_change_where_a_watch_ends(
    history: list[tuple[EventType, Obj]], data: st.DataObject
) -> None:
    watched = Watched()
    written = [obj for event, obj in history if event is not DELETED]
    for position, (event, obj) in enumerate(history):
        watched.store.observe(PODS, event, obj)
        for answer in data.draw(st.lists(st.sampled_from(written), max_size=2), label=f"late at {position}"):
            watched.store.absorb(PODS, answer)
    for answer in written:
        watched.store.absorb(PODS, answer)

    event, obj = history[-1]
    assert watched.now() == (None if event is DELETED else version_of(obj))


@given(histories(), st.data())
def test_a_list_after_a_gap_ends_where_the_watch_would_have(
    history: list[tuple[EventType, Obj]], data: st.DataObject
) -> None:
    watched = Watched()
    seen = data.draw(st.integers(0, len(history)), label="events before the gap")
    for event, obj in history[:seen]:
        watched.store.observe(PODS, event, obj)

    event, obj = history[-1]
    listed = [] if event is DELETED else [obj]
    for item in listed:
        watched.store.observe(PODS, ADDED, item)
    watched.store.prune(
        PODS, [Identity("a", "p", o["metadata"]["uid"]) for o in listed], version_of(obj), None
    )

    assert watched.now() == (version_of(obj) if listed else None)
