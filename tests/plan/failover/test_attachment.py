"""Seats that follow pods: the engine on a slot is whoever holds the seat's devices, as kubelet says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api.engineslot import Attached, EngineSlotStatus
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import HOLDER_UNKNOWN
from kvpool.plan.attachment import attached
from kvpool.plan.engines import PodBook
from tests.builders.failover import two_racks

ENGINE, STANDBY = "uid-decode-node-1-acc-0", "uid-standby-node-2-acc-0"


def attached_pod(holder: str, *, remembered: str = "", **pod: object) -> str | None:
    """UID of the pod on the slot, when its seat's device is held by `holder` and no engine speaks itself.

    `remembered` is the pod that the slot's status names; `pod` changes what is known of the engine's pod.
    """
    world = two_racks().with_group(attach="Observe", standby=None).start().run(3)
    snapshot, slot = world.operator.snapshot(), world.slot()
    agent = snapshot.agents["node-1"]
    device = replace(agent.devices[0], holder=holder)
    silent = replace(
        agent, seats=(), engines=(), devices=(device,), hello_at=world.now.monotonic_seconds - 60
    )
    pods = {key: replace(found, **pod) for key, found in snapshot.pods.items()}  # type: ignore[arg-type] # fields
    snapshot = replace(snapshot, agents={"node-1": silent}, pods=pods)
    before = Attached(pod_uid=remembered, epoch=slot.spec.epoch) if remembered else None
    slot = slot.model_copy(update={"status": EngineSlotStatus(attached=before)})
    found = attached(snapshot, slot, PodBook(pods), world.now)
    return found.pod_uid if found is not None else None


def test_the_pod_that_holds_the_devices_sits_on_the_seat() -> None:
    assert attached_pod(ENGINE) == ENGINE


@pytest.mark.parametrize("holder", ["", STANDBY, "inference/decode-node-1-acc-0"])
def test_nobody_sits_on_a_seat_that_no_engine_of_the_role_is_known_to_hold(holder: str) -> None:
    assert attached_pod(holder, remembered=ENGINE) is None


def test_a_pod_with_the_longest_name_there_can_be_sits_on_its_seat() -> None:
    longest = ObjectKey("inference", "p" * 253)
    assert attached_pod(ENGINE, key=longest) == ENGINE


def test_the_silence_of_kubelet_takes_no_seat_away() -> None:
    assert attached_pod(HOLDER_UNKNOWN, remembered=ENGINE) == ENGINE


@pytest.mark.parametrize("end", [{"deleting": True}, {"phase": "Failed"}, {"ready": False}])
def test_a_pod_that_ended_sits_nowhere_though_kubelet_is_silent(end: dict[str, object]) -> None:
    assert attached_pod(HOLDER_UNKNOWN, remembered=ENGINE, **end) is None


def test_the_silence_of_kubelet_gives_no_seat_either() -> None:
    assert attached_pod(HOLDER_UNKNOWN) is None


def test_an_engine_of_another_workload_that_says_it_sits_on_the_seat_gets_nothing() -> None:
    world = two_racks().start().run(3)
    snapshot, slot = world.operator.snapshot(), world.slot()
    key = next(key for key, pod in snapshot.pods.items() if pod.uid == ENGINE)
    assert attached(snapshot, slot, PodBook(snapshot.pods), world.now) is not None
    strange = {**snapshot.pods, key: replace(snapshot.pods[key], labels={"app": "other"})}
    changed = replace(snapshot, pods=strange)
    new = slot.model_copy(update={"status": EngineSlotStatus()})
    assert attached(changed, new, PodBook(strange), world.now) is None
    assert attached(changed, slot, PodBook(strange), world.now) is not None, (
        "it served before the labels changed"
    )


def test_an_engine_whose_pod_was_not_seen_yet_keeps_its_seat() -> None:
    world = two_racks().start().run(3)
    snapshot, slot = world.operator.snapshot(), world.slot()
    unseen = {key: pod for key, pod in snapshot.pods.items() if pod.uid != ENGINE}
    found = attached(replace(snapshot, pods=unseen), slot, PodBook(unseen), world.now)
    assert found is not None
    assert found.pod_uid == ENGINE
