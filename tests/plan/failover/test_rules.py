"""Epochs and fences."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvpool.api.engineslot import FenceProof
from kvpool.api.supernode import FenceLevel
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import HOLDER_UNKNOWN, AgentView, DeviceView, EngineView, SeatPhase, SeatView
from kvpool.rules.epochs import (
    MOST_SEQUENCES,
    next_sequence,
    operator_epoch_of,
    operator_epochs_in,
    sequence_of,
    slot_epoch,
)
from kvpool.rules.fencing import Fence, fence_of_seat, weakest
from tests.builders.failover import two_racks

SLOT = ObjectKey("inference", "chat-decode-0")


@given(st.integers(0, 1 << 40), st.integers(1, MOST_SEQUENCES))
def test_a_slot_epoch_tells_its_leadership_and_its_sequence(operator_epoch: int, sequence: int) -> None:
    epoch = slot_epoch(operator_epoch, sequence)
    assert (operator_epoch_of(epoch), sequence_of(epoch)) == (operator_epoch, sequence)


@given(st.integers(0, 1 << 20), st.integers(1, MOST_SEQUENCES), st.integers(1, MOST_SEQUENCES))
def test_every_epoch_of_a_later_leader_is_higher(operator_epoch: int, one: int, other: int) -> None:
    assert slot_epoch(operator_epoch + 1, one) > slot_epoch(operator_epoch, other)


@pytest.mark.parametrize("sequence", [0, -1, MOST_SEQUENCES + 1])
def test_a_used_up_sequence_is_refused_instead_of_running_into_the_next_leadership(sequence: int) -> None:
    with pytest.raises(ValueError, match=f"sequence {sequence} of operator epoch 7"):
        slot_epoch(7, sequence)


def test_every_object_and_every_hello_counts() -> None:
    world = two_racks().start().run(5)
    world.hosts["node-3"].highest_operator_epoch = 77
    world.operator.hear()
    assert max(operator_epochs_in(world.operator.snapshot())) == 77


def test_a_sequence_is_never_given_out_twice_though_its_object_is_gone() -> None:
    world = two_racks().start().run(5)
    snapshot = world.operator.snapshot()
    used = sequence_of(world.slot().spec.epoch)
    assert next_sequence(snapshot) == used + 1
    bare = replace(snapshot, slots={}, remaps={}, kvnodes={})
    assert next_sequence(bare) == used + 1, "the leader's own memory"


def agent(*seats: SeatView, **changes: object) -> AgentView:
    view = two_racks().start().operator.views["node-1"]
    fields = {"seats": seats, "plan_revision": 5, "applied_revision": 5, "boot_id": "boot-1"} | changes
    return replace(view, **fields)  # type: ignore[arg-type]  # any field of the view


def seat(epoch: int, phase: SeatPhase, level: str = "Process") -> SeatView:
    return SeatView(SLOT, epoch, phase, "uid", "inference/pod", "10.0.0.1:8000", level)


def fence(view: AgentView | None, *, booted_as: str = "boot-1", host_is_dead: bool = False) -> Fence | None:
    return fence_of_seat(SLOT, 8, view, devices=("acc-0",), booted_as=booted_as, host_is_dead=host_is_dead)


def test_a_confirmed_stop_proves_what_the_agent_says_it_proves() -> None:
    assert fence(agent(seat(8, SeatPhase.RELEASED))) == Fence(FenceProof.RELEASE_ACK, FenceLevel.PROCESS)
    assert fence(agent(seat(8, SeatPhase.RELEASED, "ContentOnly"))) == Fence(
        FenceProof.RELEASE_ACK, FenceLevel.CONTENT_ONLY
    )
    assert fence(agent(seat(8, SeatPhase.RELEASED, "nonsense"))) == Fence(
        FenceProof.RELEASE_ACK, FenceLevel.CONTENT_ONLY
    )


@pytest.mark.parametrize("phase", [SeatPhase.WAITING, SeatPhase.ATTACHED, SeatPhase.STOPPING])
def test_a_seat_that_is_not_released_proves_nothing(phase: SeatPhase) -> None:
    assert fence(agent(seat(8, phase))) is None
    assert fence(agent(seat(8, phase)), booted_as="boot-0") is None


def test_the_stop_of_an_older_epoch_proves_nothing_about_this_one() -> None:
    older = agent(seat(7, SeatPhase.RELEASED), plan_revision=6)
    assert fence(older) is None


def test_an_agent_that_works_under_a_plan_without_the_seat_proves_that_it_never_began() -> None:
    assert fence(agent()) == Fence(FenceProof.RELEASE_ACK, FenceLevel.PROCESS)


@pytest.mark.parametrize(
    "changes",
    [{"plan_revision": 6}, {"plan_revision": 0, "applied_revision": 0}, {"connected": False}],
    ids=["a newer plan is on its way", "no plan was made", "it is not connected"],
)
def test_absence_proves_nothing_while_a_plan_may_be_on_its_way(changes: dict[str, object]) -> None:
    assert fence(agent(**changes)) is None


@pytest.mark.parametrize(
    ("holder", "device", "registers", "level"),
    [
        ("observed-pod", "acc-0", False, FenceLevel.CONTENT_ONLY),
        ("observed-pod", "acc-1", False, FenceLevel.PROCESS),
        ("observed-pod", "acc-0", True, FenceLevel.PROCESS),
        (HOLDER_UNKNOWN, "acc-0", False, FenceLevel.CONTENT_ONLY),
        ("", "acc-0", False, FenceLevel.PROCESS),
    ],
    ids=["a stranger holds it", "another device", "it waits at the agent", "nobody knows", "nobody holds it"],
)
def test_absence_proves_content_only_while_a_pod_that_the_agent_cannot_tell_holds_the_devices(
    holder: str, device: str, registers: bool, level: FenceLevel
) -> None:
    held = DeviceView(device, "GPU-1", holder, (), observed=True)
    waits = EngineView(holder, "inference/pod", "10.0.0.1:8000", (), True, "EngineReady", "", 0, 0)
    view = agent(devices=(held,), engines=(waits,) if registers else ())
    assert fence(view) == Fence(FenceProof.RELEASE_ACK, level)


def test_absence_proves_nothing_while_an_engine_says_it_sits_there() -> None:
    engine = EngineView(
        "uid", "inference/pod", "10.0.0.1:8000", ("acc-0",), False, "EngineReady", str(SLOT), 0, 0
    )
    assert fence(agent(engines=(engine,))) is None


def test_another_boot_ends_every_epoch_of_the_one_before() -> None:
    found = fence(agent(plan_revision=6), booted_as="boot-0")
    assert found == Fence(FenceProof.BOOT_ID_CHANGED, FenceLevel.PROCESS)


def test_a_dead_host_proves_only_what_its_guard_enforces() -> None:
    guarded = agent(seat(8, SeatPhase.ATTACHED))
    bare = agent(seat(8, SeatPhase.ATTACHED, "ContentOnly"))
    assert fence(guarded, host_is_dead=True) == Fence(FenceProof.GUARD_EXPIRY, FenceLevel.PROCESS)
    assert fence(bare, host_is_dead=True) == Fence(FenceProof.GUARD_EXPIRY, FenceLevel.CONTENT_ONLY)
    assert fence(None, host_is_dead=True) == Fence(FenceProof.GUARD_EXPIRY, FenceLevel.CONTENT_ONLY)


def test_silence_alone_proves_nothing() -> None:
    assert fence(None) is None
    assert fence(agent(seat(8, SeatPhase.ATTACHED), connected=False)) is None


def test_the_weakest_proof_limits_a_slot_of_several_seats() -> None:
    strong = Fence(FenceProof.RELEASE_ACK, FenceLevel.PROCESS)
    weak = Fence(FenceProof.GUARD_EXPIRY, FenceLevel.CONTENT_ONLY)
    assert weakest([strong, weak]) == weak


def test_absence_proves_no_process_out_while_the_device_could_not_be_looked_at() -> None:
    unseen = DeviceView("acc-0", "uuid", "", (), observed=False)
    assert fence(agent(devices=(unseen,))) == Fence(FenceProof.RELEASE_ACK, FenceLevel.CONTENT_ONLY)
