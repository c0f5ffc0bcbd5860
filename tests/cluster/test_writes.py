"""Writes that happen on the state they were decided on, or not at all."""

from __future__ import annotations

import pytest

from kvpool.cluster.errors import AlreadyExists, Conflict, Gone, Terminal
from kvpool.cluster.reads import find, get
from kvpool.cluster.resources import CONFIG_MAPS, Obj
from kvpool.cluster.rest import RequestRecord, Rest
from kvpool.cluster.writes import (
    create,
    delete,
    finalizer_removed,
    json_patch,
    merge_guarded,
    remove_finalizer,
    replace,
)

FINALIZER = "kvpool.dev/fence"
OTHER = "example.org/other"
FOREIGN_UID = "11111111-1111-1111-1111-111111111111"


async def make(rest: Rest, namespace: str, **metadata: object) -> Obj:
    manifest = {"metadata": {"name": "one", "namespace": namespace, **metadata}, "data": {"a": "1"}}
    return await create(rest, CONFIG_MAPS, manifest, manager="test")


async def touch(rest: Rest, obj: Obj) -> Obj:
    """Somebody else's write, which makes `obj` stale."""
    changes = {"data": {"theirs": "x"}}
    version = obj["metadata"]["resourceVersion"]
    return await merge_guarded(
        rest, CONFIG_MAPS.of(obj), changes, resource_version=version, manager="somebody"
    )


async def test_a_taken_name_is_told_from_other_conflicts(rest: Rest, namespace: str) -> None:
    await make(rest, namespace)
    with pytest.raises(AlreadyExists):
        await make(rest, namespace)


async def test_a_replace_decided_on_a_stale_state_is_a_conflict(rest: Rest, namespace: str) -> None:
    stale = await make(rest, namespace)
    fresh = await touch(rest, stale)
    with pytest.raises(Conflict):
        await replace(rest, CONFIG_MAPS, {**stale, "data": {}}, manager="test")
    answer = await replace(rest, CONFIG_MAPS, {**fresh, "data": {"a": "2"}}, manager="test")
    assert answer["data"] == {"a": "2"}


async def test_a_merge_decided_on_a_stale_state_is_a_conflict_and_changes_nothing(
    rest: Rest, namespace: str
) -> None:
    stale = await make(rest, namespace)
    fresh = await touch(rest, stale)
    with pytest.raises(Conflict):
        await touch(rest, stale)
    assert await get(rest, CONFIG_MAPS.at(namespace, "one")) == fresh


async def test_an_unconditional_write_is_refused_before_it_is_sent(
    rest: Rest, namespace: str, records: list[RequestRecord]
) -> None:
    with pytest.raises(ValueError, match="resourceVersion"):
        await replace(
            rest, CONFIG_MAPS, {"metadata": {"name": "one", "namespace": namespace}}, manager="test"
        )
    with pytest.raises(ValueError, match="resourceVersion"):
        await merge_guarded(rest, CONFIG_MAPS.at(namespace, "a"), {}, resource_version="", manager="test")
    assert records == []


async def test_a_failed_test_of_a_json_patch_is_a_conflict_and_a_bad_value_is_not(
    rest: Rest, namespace: str
) -> None:
    target = CONFIG_MAPS.of(await make(rest, namespace))
    guard = {"op": "test", "path": "/data/a", "value": "other"}
    change = {"op": "replace", "path": "/data/a", "value": "2"}
    with pytest.raises(Conflict):
        await json_patch(rest, target, [guard, change], manager="test")
    with pytest.raises(Conflict):
        await json_patch(rest, target, [{**guard, "path": "/data/missing"}, change], manager="test")
    with pytest.raises(Terminal):
        await json_patch(
            rest, target, [{"op": "add", "path": "/data/no~1slash", "value": "2"}], manager="test"
        )


async def test_a_finalizer_is_removed_once_beside_others(
    rest: Rest, namespace: str, records: list[RequestRecord]
) -> None:
    made = await make(rest, namespace, finalizers=[OTHER, FINALIZER])
    removed = await remove_finalizer(rest, CONFIG_MAPS, made, FINALIZER, manager="test")
    assert removed["metadata"]["finalizers"] == [OTHER]
    assert await remove_finalizer(rest, CONFIG_MAPS, removed, FINALIZER, manager="test") is removed
    assert [record.verb for record in records] == ["create", "patch"]


async def test_only_our_finalizer_is_removed_when_the_list_moved(rest: Rest, namespace: str) -> None:
    stale = await make(rest, namespace, finalizers=[OTHER, FINALIZER])
    await remove_finalizer(rest, CONFIG_MAPS, stale, OTHER, manager="somebody")
    with pytest.raises(Conflict):
        await remove_finalizer(rest, CONFIG_MAPS, stale, FINALIZER, manager="test")
    assert (await get(rest, CONFIG_MAPS.of(stale)))["metadata"]["finalizers"] == [FINALIZER]


async def test_removing_the_last_finalizer_of_a_deleted_object_lets_it_go(rest: Rest, namespace: str) -> None:
    made = await make(rest, namespace, finalizers=[FINALIZER])
    lingering = await delete(rest, CONFIG_MAPS.of(made), uid=made["metadata"]["uid"])
    assert lingering is not None
    assert lingering["metadata"]["deletionTimestamp"]

    await remove_finalizer(rest, CONFIG_MAPS, lingering, FINALIZER, manager="test")
    assert await find(rest, CONFIG_MAPS.of(made)) is None


def test_a_finalizers_patch_is_bound_to_the_incarnation() -> None:
    metadata = {"uid": "u", "resourceVersion": "7", "finalizers": [FINALIZER]}
    guard = {"op": "test", "path": "/metadata/uid", "value": "u"}
    assert finalizer_removed(metadata, FINALIZER)[0] == guard


async def test_a_delete_touches_only_the_incarnation_it_means(rest: Rest, namespace: str) -> None:
    made = await make(rest, namespace)
    target = CONFIG_MAPS.of(made)
    with pytest.raises(Conflict):
        await delete(rest, target, uid=FOREIGN_UID)
    fresh = await touch(rest, made)
    with pytest.raises(Conflict):
        await delete(
            rest,
            target,
            uid=made["metadata"]["uid"],
            resource_version=made["metadata"]["resourceVersion"],
        )
    assert await delete(rest, target, uid=fresh["metadata"]["uid"]) is None
    with pytest.raises(Gone):
        await delete(rest, target, uid=made["metadata"]["uid"])
