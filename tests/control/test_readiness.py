"""Since when a Node is ready is remembered as long as the Node."""

from __future__ import annotations

from kvpool.cluster.resources import NODES, Obj
from kvpool.cluster.store import EventType
from kvpool.control.facts import Facts


def tell(facts: Facts, version: int, uid: str, event: EventType = EventType.MODIFIED) -> float | None:
    """Tell of node-1, ready; since when it is."""
    node: Obj = {
        "metadata": {"name": "node-1", "uid": uid, "resourceVersion": str(version)},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": {"memory": "1Gi"}},
    }
    facts.store.observe(NODES, event, node)
    known = facts.nodes().get("node-1")
    return known.ready_since if known is not None else None


def test_news_of_the_same_node_change_nothing(facts: Facts) -> None:
    since = tell(facts, 1, "a")
    assert since is not None
    assert tell(facts, 2, "a") == since


def test_another_node_of_the_same_name_begins_anew(facts: Facts) -> None:
    first = tell(facts, 1, "a")
    second = tell(facts, 2, "b")
    assert first is not None
    assert second is not None
    assert second > first


def test_a_node_that_went_is_forgotten(facts: Facts) -> None:
    first = tell(facts, 1, "a")
    assert tell(facts, 2, "a", EventType.DELETED) is None
    again = tell(facts, 3, "a")
    assert first is not None
    assert again is not None
    assert again > first
