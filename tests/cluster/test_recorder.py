"""Events: what people get to see, how often, and that nobody waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.controlplane import ControlPlane
from kvpool.cluster.recorder import (
    NOTE_LIMIT_BYTES,
    EventGate,
    EventRecorder,
    Limits,
    Outcome,
    Severity,
    cut,
)
from kvpool.cluster.resources import CONFIG_MAPS, Obj
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import create
from tests.harness.faultproxy import Answer, FaultProxy

SECONDS = 10.0


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[EventRecorder]:
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def events(plane: ControlPlane, namespace: str, field_selector: str = "") -> list[Obj]:
    return plane.admin.list("events.k8s.io/v1", "Event", namespace, field_selector=field_selector)


async def make(rest: Rest, namespace: str) -> Obj:
    manifest = {"metadata": {"name": "one", "namespace": namespace}}
    return await create(rest, CONFIG_MAPS, manifest, manager="test")


async def test_an_event_tells_about_its_object_in_the_objects_namespace(
    rest: Rest, control_plane: ControlPlane, namespace: str
) -> None:
    about = await make(rest, namespace)
    async with running(EventRecorder(rest, controller="kvpool.dev/operator", instance="op-0")) as recorder:
        recorder.record(about, Severity.WARNING, "BindShort", "bound 1Gi of 2Gi", action="Bind")
        assert await recorder.drain(timeout_seconds=SECONDS)

    (event,) = events(control_plane, namespace)
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "namespace": namespace,
        "name": "one",
        "uid": about["metadata"]["uid"],
    }
    assert (event["type"], event["reason"], event["action"]) == ("Warning", "BindShort", "Bind")
    assert event["note"] == "bound 1Gi of 2Gi"
    assert (event["reportingController"], event["reportingInstance"]) == ("kvpool.dev/operator", "op-0")


async def test_an_event_about_a_cluster_scoped_object_is_posted_too(
    rest: Rest, control_plane: ControlPlane, namespace: str
) -> None:
    about = control_plane.admin.get("v1", "Namespace", namespace)
    async with running(EventRecorder(rest, controller="kvpool.dev/operator", instance="op-0")) as recorder:
        recorder.record(about, Severity.NORMAL, "Seen", "was seen", action="Look")
        assert await recorder.drain(timeout_seconds=SECONDS)
    assert len(events(control_plane, "default", f"regarding.name={namespace}")) == 1


async def test_the_longest_texts_are_cut_to_what_the_api_takes(rest: Rest, namespace: str) -> None:
    about = await make(rest, namespace)
    outcomes: list[Outcome] = []
    recorder = EventRecorder(rest, controller="kvpool.dev/o", instance="op-0", on_outcome=outcomes.append)
    async with running(recorder):
        recorder.record(about, Severity.NORMAL, "R" * 200, "ä" * 2000, action="A" * 200)
        assert await recorder.drain(timeout_seconds=SECONDS)
    assert outcomes == [Outcome.POSTED]


async def test_the_same_event_is_posted_once(rest: Rest, control_plane: ControlPlane, namespace: str) -> None:
    about = await make(rest, namespace)
    outcomes: list[Outcome] = []
    recorder = EventRecorder(rest, controller="kvpool.dev/o", instance="op-0", on_outcome=outcomes.append)
    async with running(recorder):
        for note in ("first", "first", "second"):
            recorder.record(about, Severity.NORMAL, "Reason", note, action="Act")
        assert await recorder.drain(timeout_seconds=SECONDS)
    assert sorted(outcomes) == [Outcome.POSTED, Outcome.POSTED, Outcome.REPEATED]
    assert len(events(control_plane, namespace)) == 2


async def test_an_event_that_the_api_does_not_take_is_dropped_and_counted(
    through_proxy: Rest, proxy: FaultProxy, namespace: str
) -> None:
    about = await make(through_proxy, namespace)
    outcomes: list[Outcome] = []
    recorder = EventRecorder(
        through_proxy, controller="kvpool.dev/o", instance="op-0", on_outcome=outcomes.append
    )
    proxy.inject(Answer(500), path="/events")
    async with running(recorder):
        recorder.record(about, Severity.NORMAL, "Reason", "lost", action="Act")
        recorder.record(about, Severity.NORMAL, "Reason", "posted", action="Act")
        assert await recorder.drain(timeout_seconds=SECONDS)
    assert outcomes == [Outcome.FAILED, Outcome.POSTED]


async def test_recording_never_waits_and_a_full_queue_drops(rest: Rest) -> None:
    about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}}
    limits = Limits(burst=2000)
    recorder = EventRecorder(rest, controller="kvpool.dev/o", instance="op-0", limits=limits)
    notes = [f"note {number}" for number in range(1001)]
    outcomes = [recorder.record(about, Severity.NORMAL, "R", note, action="A") for note in notes]
    assert outcomes == [Outcome.POSTED] * 1000 + [Outcome.OVERFLOWED]
    assert not await recorder.drain(timeout_seconds=0.05), "nobody posts"


@pytest.mark.parametrize(
    ("happenings", "outcomes"),
    [
        ([("a", 0.0), ("a", 119.0), ("a", 120.0)], ["posted", "repeated", "posted"]),
        ([("a", 0.0), ("b", 0.0), ("c", 0.0)], ["posted", "posted", "limited"]),
        ([("a", 0.0), ("b", 0.0), ("c", 0.5), ("c", 1.0)], ["posted", "posted", "limited", "posted"]),
        ([("a", 0.0), ("b", 900.0), ("c", 900.0), ("d", 900.0)], ["posted", "posted", "posted", "limited"]),
    ],
)
def test_repeats_and_floods_are_held_back(happenings: list[tuple[str, float]], outcomes: list[str]) -> None:
    gate = EventGate(Limits(repeat_seconds=120.0, burst=2, per_second=1.0))
    assert [gate.admit((what,), now) for what, now in happenings] == outcomes


@given(st.text(max_size=600), st.integers(3, 1024))
def test_a_cut_text_fits_and_begins_like_the_text(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert len(short.encode()) <= limit
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]))


def test_a_text_that_fits_is_left_alone() -> None:
    assert cut("x" * NOTE_LIMIT_BYTES, NOTE_LIMIT_BYTES) == "x" * NOTE_LIMIT_BYTES
