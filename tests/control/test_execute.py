"""Decisions carried out on the real API server."""

from __future__ import annotations

import pytest

from kvpool.cluster.reads import find
from kvpool.cluster.resources import KV_NODES
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import merge_guarded
from kvpool.control.execute import Executor, NotLeadingError
from kvpool.control.facts import Facts
from kvpool.control.faultpoints import FaultPoints
from kvpool.control.keeper_pod import KeeperTemplate
from kvpool.model.decisions import CreateKVNode, DeleteKVNode, Reason, SetUnits
from tests.harness.faultproxy import Answer, Break, FaultProxy

WHY = Reason("Test", "for a test")


def an_executor(rest: Rest, facts: Facts, *, leads: bool = True) -> Executor:
    keepers = KeeperTemplate("image", "default", "default", "/units", 1000)
    return Executor(rest, facts, keepers, leads=lambda: leads, operator_epoch=lambda: 7, faults=FaultPoints())


async def test_an_answer_is_known_before_the_watch_brings_it(
    rest: Rest, facts: Facts, namespace: str
) -> None:
    (outcome,) = await an_executor(rest, facts).run([CreateKVNode(namespace, WHY)])
    assert (outcome.done, outcome.wrote) == (True, True)
    assert facts.kvnodes()[namespace].spec.operator_epoch == 7


async def test_an_object_that_is_there_already_is_no_failure(
    rest: Rest, facts: Facts, namespace: str
) -> None:
    create = CreateKVNode(namespace, WHY)
    _, again = await an_executor(rest, facts).run([create, create])
    assert (again.done, again.wrote, again.error) == (True, False, None)


async def test_a_conflict_is_no_error_and_holds_up_no_other(rest: Rest, facts: Facts, namespace: str) -> None:
    executor = an_executor(rest, facts)
    await executor.run([CreateKVNode(namespace, WHY)])
    moved, other = await executor.run(
        [SetUnits(namespace, "1", (), WHY), CreateKVNode(f"{namespace}-2", WHY)]
    )
    assert (moved.done, moved.error) == (False, None)
    assert other.wrote


async def test_a_node_that_took_something_since_is_not_deleted(
    rest: Rest, facts: Facts, namespace: str
) -> None:
    executor = an_executor(rest, facts)
    await executor.run([CreateKVNode(namespace, WHY)])
    decided_on = facts.kvnodes()[namespace].metadata
    at = KV_NODES.at(None, namespace)
    taken = await merge_guarded(
        rest,
        at,
        {"spec": {"revision": 3}},
        resource_version=decided_on.resource_version,
        manager="somebody",
    )
    delete = DeleteKVNode(namespace, decided_on.uid, decided_on.resource_version, WHY)
    (outcome,) = await executor.run([delete])
    assert (outcome.done, outcome.error) == (False, None)
    assert await find(rest, at) is not None
    fresh = DeleteKVNode(namespace, decided_on.uid, taken["metadata"]["resourceVersion"], WHY)
    (outcome,) = await executor.run([fresh])
    assert outcome.done
    assert await find(rest, at) is None


async def test_a_server_that_fails_is_an_error(
    rest: Rest, facts: Facts, namespace: str, proxy: FaultProxy
) -> None:
    proxy.inject(Answer(503), times=10, method="POST", path="kvnodes")
    (outcome,) = await an_executor(rest, facts).run([CreateKVNode(namespace, WHY)])
    assert outcome.error is not None


async def test_actions_without_an_answer_keep_no_other_kind_from_its_turn(
    rest: Rest, facts: Facts, namespace: str, proxy: FaultProxy
) -> None:
    executor = an_executor(rest, facts)
    await executor.run([CreateKVNode(namespace, WHY)])
    known = facts.kvnodes()[namespace].metadata
    proxy.inject(Break.STALL, times=10, method="POST", path="kvnodes")
    tried = len(proxy.seen("POST", "kvnodes"))
    delete = DeleteKVNode(namespace, known.uid, known.resource_version, WHY)
    hung, skipped, done = await executor.run(
        [CreateKVNode(f"{namespace}-2", WHY), CreateKVNode(f"{namespace}-3", WHY), delete]
    )
    assert len(proxy.seen("POST", "kvnodes")) == tried + 1
    assert hung.error is skipped.error is not None
    assert done.wrote


async def test_nothing_is_written_without_the_lease(
    rest: Rest, facts: Facts, namespace: str, proxy: FaultProxy
) -> None:
    with pytest.raises(NotLeadingError):
        await an_executor(rest, facts, leads=False).run([CreateKVNode(namespace, WHY)])
    assert not proxy.seen("POST")
