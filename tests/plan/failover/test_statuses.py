"""What PDGroups and Supernodes say of themselves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvpool.api import PDGroup
from kvpool.api.common import LabelSelector
from kvpool.api.conditions import Condition
from kvpool.api.supernode import EvidenceClass
from kvpool.model.ids import ObjectKey
from kvpool.plan.groups import group_status
from kvpool.plan.supernodes import supernode_status
from tests.builders.failover import GROUP, NAMESPACE, World, two_racks


def group(world: World, name: str = "chat") -> dict[str, Condition]:
    snapshot = world.operator.snapshot()
    status = group_status(snapshot, snapshot.groups[ObjectKey(NAMESPACE, name)], world.now)
    return {condition.type: condition for condition in status.conditions}


def supernode(world: World) -> dict[str, Condition]:
    snapshot = world.operator.snapshot()
    status = supernode_status(snapshot, snapshot.supernodes["sn-a"], world.now)
    return {condition.type: condition for condition in status.conditions}


def change_group(world: World, **changes: object) -> World:
    """Replace parts of the group's spec, given as they are written in YAML."""
    spec = world.api.groups[GROUP].spec.dump() | changes
    metadata = world.api.groups[GROUP].metadata.dump()
    world.api.groups[GROUP] = PDGroup.parse({"metadata": metadata, "spec": spec})
    return world


def test_a_group_whose_slots_all_serve_is_ready() -> None:
    world = two_racks().start().run(20, step=1.0)
    snapshot = world.operator.snapshot()
    status = group_status(snapshot, snapshot.groups[GROUP], world.now)
    assert (status.slots, status.serving) == (1, 1)
    assert [(m.name, m.weight, m.effective_weight) for m in status.members] == [("chat-decode-0", 10, 10)]
    assert status.routing.outputs[0].acknowledged == "Observed"
    assert group(world)["Ready"].reason == "Serving"


def test_a_group_names_the_slots_that_do_not_serve() -> None:
    world = two_racks().start().run(20, step=1.0)
    for host in world.hosts:
        world.report(host, "acc-0", EvidenceClass.FATAL)
    world.run(3)
    ready = group(world)["Ready"]
    assert (ready.status, ready.reason) == ("False", "SlotsUnserved")
    assert "0 of 1 slots serve; not chat-decode-0" in ready.message


def test_a_group_without_its_pool_gets_no_slots() -> None:
    world = two_racks()
    world.api.pools.clear()
    world.start().run(3)
    assert not world.api.slots
    assert group(world)["Ready"].reason == "PoolNotFound"
    assert "KVPool inference/chat" in group(world)["Ready"].message


def test_of_two_groups_that_select_the_same_pods_the_younger_is_refused_with_names() -> None:
    world = two_racks()
    younger = world.api.groups[GROUP].metadata.model_copy(
        update={"name": "copy", "creation_timestamp": "2026-01-02T03:00:09Z"}
    )
    world.api.groups[ObjectKey(NAMESPACE, "copy")] = world.api.groups[GROUP].model_copy(
        update={"metadata": younger}
    )
    world.start().run(5)
    assert [slot.spec.pd_group for slot in world.api.slots.values()] == ["chat"]
    ready = group(world, "copy")["Ready"]
    assert ready.reason == "PodsClaimedByOther"
    assert "1 of 1 pods (decode-node-1-acc-0) belong to the older PDGroup inference/chat" in ready.message


def test_more_slots_than_devices_are_refused_with_both_figures() -> None:
    world = two_racks().with_group(instances=9).start().run(5)
    ready = group(world)["Ready"]
    assert ready.reason == "MoreSlotsThanDevices"
    assert "9 slots need 9 devices, 4 nodes have 4" in ready.message


def test_a_workload_without_scale_is_refused_with_a_message() -> None:
    world = two_racks()
    change_group(world, decode={"workloadRef": {"kind": "DaemonSet", "name": "decode"}})
    world.selectors = {f"{NAMESPACE}/DaemonSet/decode": None}
    world.start().run(3)
    ready = group(world)["Ready"]
    assert ready.reason == "WorkloadNotScalable"
    assert "spec.decode.workloadRef inference/DaemonSet/decode" in ready.message


def test_a_workload_is_found_through_its_scale_selector() -> None:
    world = two_racks()
    change_group(world, decode={"workloadRef": {"kind": "Deployment", "name": "decode"}})
    world.selectors = {f"{NAMESPACE}/Deployment/decode": LabelSelector(match_labels={"app": "decode"})}
    world.start().run(5)
    assert world.place() == "node-1/acc-0"


def with_prefill(prefill: int, decode: int, **ratio: str) -> World:
    world = World()
    for number in range(prefill + decode):
        world.with_host(f"n-{number}", board=f"b{number}", rack="r1")
        role = "prefill" if number < prefill else "decode"
        world.with_engine(f"n-{number}", "acc-0", name=f"{role}-{number}", app=role)
    world.with_supernode().with_group(instances=decode)
    prefill_role = {"podSelector": {"matchLabels": {"app": "prefill"}}, "instances": prefill}
    return change_group(world, prefill=prefill_role, ratio=ratio).start().run(20, step=1.0)


@pytest.mark.parametrize(
    ("prefill", "decode", "ratio", "reason"),
    [
        (1, 1, {"min": "1/2", "max": "3/1"}, "WithinBounds"),
        (1, 3, {"min": "1/2"}, "BelowMinimum"),
        (3, 1, {"max": "2/1"}, "AboveMaximum"),
    ],
)
def test_the_ratio_of_serving_instances_is_held_against_its_bounds(
    prefill: int, decode: int, ratio: dict[str, str], reason: str
) -> None:
    world = with_prefill(prefill, decode, **ratio)
    condition = group(world)["RatioConstraintViolated"]
    assert condition.reason == reason
    assert f"{prefill} prefill to {decode} decode instances serve" in condition.message


def test_an_output_that_must_carry_weights_and_cannot_is_named() -> None:
    output = {"name": "sgl", "type": "PodLabel", "podLabel": {"key": "serving"}, "weights": "Required"}
    world = two_racks().with_group(routing={"outputs": [output]}).start().run(3)
    assert "sgl (PodLabel) know only in and out" in group(world)["WeightNotExpressible"].message


def test_an_output_that_could_not_be_written_is_named_with_the_reason() -> None:
    output = {"name": "sgl", "type": "PodLabel", "podLabel": {"key": "serving"}}
    world = two_racks().with_group(routing={"outputs": [output]}).start().run(3)
    assert "OutputNotWritten" not in group(world)
    key = ObjectKey(NAMESPACE, "chat")
    snapshot = replace(world.operator.snapshot(), output_errors={(key, "sgl"): "403 Forbidden"})
    status = group_status(snapshot, snapshot.groups[key], world.now)
    said = {condition.type: condition.message for condition in status.conditions}
    assert said["OutputNotWritten"] == "sgl: 403 Forbidden"


def test_engines_that_cannot_be_stopped_are_named_when_a_stop_is_required() -> None:
    world = two_racks().with_supernode(failover={"fence": {"require": "Process"}})
    world.with_group(attach="Observe", standby=None).start().run(3)
    assert group(world)["FenceNotEnforceable"].status == "True"


def test_a_fence_below_the_required_level_blocks_the_bind_and_says_what_to_do() -> None:
    world = two_racks().with_supernode(failover={"fence": {"require": "Process"}}).start().run(80, step=1.0)
    world.fence_level = "ContentOnly"
    world.report("node-1", "acc-0", EvidenceClass.FATAL).run(5)
    assert world.place() == "node-1/acc-0"
    assert world.reason().code == "FenceNotEnforceable"
    assert "ReleaseAck reached ContentOnly, failover.fence.require is Process" in world.reason().message
    assert world.open_remaps()[0].status.blocked_reason == "FenceNotEnforceable"


def test_a_group_in_mode_recommend_says_that_it_withholds() -> None:
    world = change_group(two_racks(), mode="Recommend").start().run(3)
    assert group(world)["ActionWithheld"].reason == "ModeRecommend"


def test_a_supernode_counts_its_devices_by_what_they_do() -> None:
    world = two_racks().start().run(80, step=1.0)
    world.report("node-4", "acc-0", EvidenceClass.FATAL).run(2)
    snapshot = world.operator.snapshot()
    status = supernode_status(snapshot, snapshot.supernodes["sn-a"], world.now)
    assert (status.nodes, status.devices.active, status.devices.spare) == (4, 1, 2)
    assert (status.devices.faulty, status.spares.ready, status.spares.floor) == (1, 2, 1)


def test_a_supernode_without_spares_says_so() -> None:
    world = two_racks().start().run(20, step=1.0)
    assert supernode(world)["SparesLow"].reason == "Enough"
    for host in ("node-2", "node-3", "node-4"):
        world.report(host, "acc-0", EvidenceClass.FATAL)
    world.run(2)
    assert supernode(world)["SparesLow"].reason == "Exhausted"


def test_a_supernode_names_its_dead_hosts() -> None:
    world = two_racks().start().run(20, step=1.0).kill_host("node-4").run(14, step=1.0)
    assert "1 of 4 hosts are dead: node-4" in supernode(world)["Ready"].message
