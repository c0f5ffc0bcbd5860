"""Server-side apply: what is owned, what is left alone, and when nothing is sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.cluster.apply import Applier, carries
from kvpool.cluster.errors import Conflict, Gone, Terminal
from kvpool.cluster.reads import get
from kvpool.cluster.resources import CONFIG_MAPS, PODS, Obj
from kvpool.cluster.rest import RequestRecord, Rest
from kvpool.cluster.writes import create


def config_map(namespace: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": "one", "namespace": namespace}, "data": data}


def pod(namespace: str, name: str = "p") -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "none"}]}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec}


def pod_status(namespace: str, ready: str, name: str = "p") -> dict[str, Any]:
    condition = {"type": "kvpool.dev/Ready", "status": ready}
    return {"metadata": {"name": name, "namespace": namespace}, "status": {"conditions": [condition]}}


def applies(records: list[RequestRecord]) -> int:
    return sum(record.verb == "apply" for record in records)


async def test_applying_again_changes_nothing_on_the_server(rest: Rest, namespace: str) -> None:
    first = await Applier(rest, "kvpool-a").apply(CONFIG_MAPS, config_map(namespace, a="1"))
    again = await Applier(rest, "kvpool-a").apply(CONFIG_MAPS, config_map(namespace, a="1"))

    assert again.sent, "a new process cannot know that it applied before"
    assert again.obj["metadata"]["resourceVersion"] == first.obj["metadata"]["resourceVersion"]


async def test_an_apply_that_changes_nothing_is_not_sent(
    rest: Rest, namespace: str, records: list[RequestRecord]
) -> None:
    applier = Applier(rest, "kvpool-a")
    first = await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"))
    again = await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"), current=first.obj)

    assert (again.sent, again.obj) == (False, first.obj)
    assert applies(records) == 1


async def test_an_apply_is_sent_when_somebody_else_changed_our_field(rest: Rest, namespace: str) -> None:
    applier = Applier(rest, "kvpool-a")
    await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"))
    theirs = await Applier(rest, "other").apply(CONFIG_MAPS, config_map(namespace, a="2"))
    back = await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"), current=theirs.obj)

    assert back.sent
    assert back.obj["data"] == {"a": "1"}


async def test_an_apply_is_sent_to_an_object_that_was_made_anew(rest: Rest, namespace: str) -> None:
    applier = Applier(rest, "kvpool-a")
    first = await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"))
    another = {**first.obj, "metadata": {**first.obj["metadata"], "uid": "another"}}
    assert (await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"), current=another)).sent


async def test_a_field_left_out_is_removed_although_the_object_carries_all_the_rest(
    rest: Rest, namespace: str
) -> None:
    applier = Applier(rest, "kvpool-a")
    both = await applier.apply(CONFIG_MAPS, config_map(namespace, a="1", b="2"))
    one = await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"), current=both.obj)
    assert one.sent
    assert one.obj["data"] == {"a": "1"}


async def test_fields_of_another_concern_stay(rest: Rest, namespace: str) -> None:
    await Applier(rest, "kvpool-a").apply(CONFIG_MAPS, config_map(namespace, a="1"))
    both = await Applier(rest, "kvpool-b").apply(CONFIG_MAPS, config_map(namespace, b="2"))
    assert both.obj["data"] == {"a": "1", "b": "2"}


async def test_a_status_apply_leaves_spec_alone_and_is_skipped_when_it_changes_nothing(
    rest: Rest, namespace: str, records: list[RequestRecord]
) -> None:
    made = await create(rest, PODS, pod(namespace), manager="test")
    applier = Applier(rest, "kvpool-a")

    first = await applier.apply_status(PODS, pod_status(namespace, "True"))
    assert first.obj["spec"] == made["spec"]
    assert first.obj["metadata"].get("generation") == made["metadata"].get("generation")

    skipped = await applier.apply_status(PODS, pod_status(namespace, "True"), current=first.obj)
    changed = await applier.apply_status(PODS, pod_status(namespace, "False"), current=first.obj)
    assert (skipped.sent, changed.sent) == (False, True)
    assert applies(records) == 2


async def test_the_status_of_a_missing_object_is_gone(rest: Rest, namespace: str) -> None:
    with pytest.raises(Gone):
        await Applier(rest, "kvpool-a").apply_status(PODS, pod_status(namespace, "True", name="missing"))


async def test_an_apply_on_a_stale_resource_version_is_a_conflict(rest: Rest, namespace: str) -> None:
    applier = Applier(rest, "kvpool-a")
    first = await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"))
    await applier.apply(CONFIG_MAPS, config_map(namespace, a="2"))
    stale = config_map(namespace, a="3")
    stale["metadata"]["resourceVersion"] = first.obj["metadata"]["resourceVersion"]
    with pytest.raises(Conflict):
        await applier.apply(CONFIG_MAPS, stale)
    assert (await get(rest, CONFIG_MAPS.at(namespace, "one")))["data"] == {"a": "2"}


async def test_an_apply_bound_to_another_incarnation_is_a_conflict(rest: Rest, namespace: str) -> None:
    applier = Applier(rest, "kvpool-a")
    await applier.apply(CONFIG_MAPS, config_map(namespace, a="1"))
    foreign = config_map(namespace, a="2")
    foreign["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111"
    with pytest.raises(Conflict):
        await applier.apply(CONFIG_MAPS, foreign)


async def test_fields_that_the_schema_does_not_know_are_refused_for_good(rest: Rest, namespace: str) -> None:
    manifest = {**config_map(namespace), "dta": {"a": "1"}}
    with pytest.raises(Terminal):
        await Applier(rest, "kvpool-a").apply(CONFIG_MAPS, manifest)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=2), json, max_size=4)


@given(objects, objects)
def test_an_object_carries_itself_and_what_it_was_merged_from(extra: Obj, wanted: Obj) -> None:
    assert carries(wanted, wanted)
    assert carries({**extra, **wanted}, wanted)


@pytest.mark.parametrize(
    ("current", "wanted"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": True}),
        ({}, {"a": None}),
        ({"a": [1, 2]}, {"a": [1]}),
        ({"a": [2, 1]}, {"a": [1, 2]}),
        ({"a": "x"}, {"a": {"b": 1}}),
        (None, {}),
    ],
)
def test_what_differs_is_not_carried(current: object, wanted: object) -> None:
    assert not carries(current, wanted)
