"""Labels of PodLabel outputs on real pods."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kvpool.cluster.errors import ApiError
from kvpool.cluster.reads import get
from kvpool.cluster.resources import PODS
from kvpool.cluster.rest import Rest, Verb
from kvpool.cluster.writes import create
from kvpool.control.pod_labels import PodLabels
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import PodFact
from tests.control.groups import a_pod_fact
from tests.harness.faultproxy import Answer, FaultProxy

KEY = "example.com/serves"
ON: Mapping[str, str | None] = {KEY: "true"}
OFF: Mapping[str, str | None] = {KEY: None}


async def a_pod(rest: Rest, namespace: str, name: str, **labels: str) -> tuple[str, dict[str, PodFact]]:
    """A real pod's UID, and what is known of it."""
    spec = {"containers": [{"name": "engine", "image": "example.com/engine"}]}
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "engine", **labels}}
    pod = await create(rest, PODS, {"metadata": metadata, "spec": spec}, manager="people")
    uid = str(pod["metadata"]["uid"])
    return uid, {uid: a_pod_fact(namespace, name, uid)}


async def labels_of(rest: Rest, namespace: str, name: str) -> dict[str, str]:
    pod = await get(rest, PODS.at(namespace, name))
    return dict(pod["metadata"]["labels"])


@pytest.fixture
def output(rest: Rest, namespace: str) -> PodLabels:
    return PodLabels(rest, ObjectKey(namespace, "chat"), "labels")


async def test_the_label_comes_with_a_weight_and_goes_without_one(
    rest: Rest, namespace: str, output: PodLabels
) -> None:
    uid, pods = await a_pod(rest, namespace, "engine-0")
    await output.bring(KEY, {uid: ON}, pods)
    assert await labels_of(rest, namespace, "engine-0") == {"app": "engine", KEY: "true"}
    await output.bring(KEY, {uid: OFF}, pods)
    assert await labels_of(rest, namespace, "engine-0") == {"app": "engine"}


async def test_a_removal_that_failed_is_tried_until_it_is_done(
    rest: Rest, namespace: str, output: PodLabels, proxy: FaultProxy
) -> None:
    uid, pods = await a_pod(rest, namespace, "engine-0")
    await output.bring(KEY, {uid: ON}, pods)
    proxy.inject(Answer(503), times=10, method="PATCH", path="engine-0")
    with pytest.raises(ApiError):
        await output.bring(KEY, {}, {})
    proxy.heal()
    await output.bring(KEY, {}, {})
    assert await labels_of(rest, namespace, "engine-0") == {"app": "engine"}


async def test_a_new_leader_finds_what_this_output_labelled_and_nothing_of_others(
    rest: Rest, namespace: str, output: PodLabels
) -> None:
    mine, pods = await a_pod(rest, namespace, "engine-0")
    others, others_pods = await a_pod(rest, namespace, "engine-1")
    await a_pod(rest, namespace, "engine-2", **{KEY: "true"})
    await output.bring(KEY, {mine: ON}, pods)
    await PodLabels(rest, ObjectKey(namespace, "code"), "labels").bring(KEY, {others: ON}, others_pods)

    await PodLabels(rest, ObjectKey(namespace, "chat"), "labels").bring(KEY, {}, {})
    assert KEY not in await labels_of(rest, namespace, "engine-0")
    assert await labels_of(rest, namespace, "engine-1") == {"app": "engine", KEY: "true"}
    assert await labels_of(rest, namespace, "engine-2") == {"app": "engine", KEY: "true"}


async def test_two_outputs_on_one_pod_leave_each_others_labels(
    rest: Rest, namespace: str, output: PodLabels
) -> None:
    uid, pods = await a_pod(rest, namespace, "engine-0")
    await output.bring(KEY, {uid: ON}, pods)
    other = PodLabels(rest, ObjectKey(namespace, "chat"), "more")
    await other.bring("example.com/more", {uid: {"example.com/more": "true"}}, pods)
    assert {KEY, "example.com/more"} <= (await labels_of(rest, namespace, "engine-0")).keys()


async def test_a_pod_that_is_not_known_yet_is_looked_for(
    rest: Rest, namespace: str, output: PodLabels
) -> None:
    uid, _ = await a_pod(rest, namespace, "engine-0")
    await output.bring(KEY, {uid: ON}, {})
    assert (await labels_of(rest, namespace, "engine-0"))[KEY] == "true"


async def test_a_pod_that_went_is_no_trouble_and_comes_not_back(
    rest: Rest, namespace: str, output: PodLabels
) -> None:
    uid, pods = await a_pod(rest, namespace, "engine-0")
    await output.bring(KEY, {uid: ON}, pods)
    await rest.request(Verb.DELETE, PODS.at(namespace, "engine-0"), query={"gracePeriodSeconds": "0"})
    output.reapply()
    await output.bring(KEY, {uid: ON}, pods)
    await output.bring(KEY, {}, {})
    with pytest.raises(ApiError):
        await labels_of(rest, namespace, "engine-0")
