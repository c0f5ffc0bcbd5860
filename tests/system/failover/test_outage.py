"""What is away for a while takes nothing with it: nothing moves for an API server, nothing twice for agents.

Blocks that were stored before are read from the store itself throughout.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from demo.neighbours.mooncake import MooncakeMaster
from devcluster.rest import ApiError, JsonObject
from kvpool.api import labels
from tests.harness.waiting import wait_until
from tests.neighbours.conftest import require_mooncake
from tests.system.blocks import Reader, client_of, fill
from tests.system.failover.figures import record
from tests.system.failover.killing import AwaitedMove
from tests.system.failover.manifests import API_VERSION, NAMESPACE
from tests.system.failover.world import NODES, FailoverWorld, condition, first_times, sample, stays

pytestmark = [
    pytest.mark.real,
    pytest.mark.memory,
    pytest.mark.mooncake,
    pytest.mark.xdist_group("failover-outage"),
    pytest.mark.timeout(300),
]

OUTAGE_SECONDS = 60.0
CURRENT_SECONDS = 10.0
HEARD_SECONDS = 3.0
BIND_SECONDS = 45.0
STEP_SECONDS = 30.0
BLOCKS_PER_SECOND = 10
"""Read at the very least; a busy machine makes ten times as many."""
STORED = "stored"
TIER = "DRAM"


@dataclass(frozen=True)
class Store:
    """A pool with a segment on each node, and blocks in it."""

    world: FailoverWorld
    master: MooncakeMaster

    def pool(self) -> JsonObject:
        """The KVPool."""
        return self.world.api.get(API_VERSION, "KVPool", STORED, NAMESPACE)

    def holds(self) -> dict[str, tuple[object, ...]]:
        """What stays the same as long as nothing is made anew: units by node, keepers and their processes."""
        held: dict[str, tuple[object, ...]] = {
            node: tuple(
                (unit["name"], unit["generation"]) for unit in self.world.kvnode(node)["spec"]["units"]
            )
            for node in NODES
        }
        installed = self.world.installed
        keepers = installed.plane.admin.list(
            "v1", "Pod", installed.namespace, label_selector=f"{labels.COMPONENT}=keeper"
        )
        for pod in keepers:
            process = installed.hosts[pod["spec"]["nodeName"]].process_of(pod)
            held[pod["metadata"]["name"]] = (pod["metadata"]["uid"], process.pid if process else None)
        return held

    def observed_since(self, moment: dt.datetime) -> bool:
        """Whether every figure of the pool's status is younger."""
        tiers = self.pool()["status"]["tiers"]
        observed = [tier.get("observedAt") for tier in tiers]  # a new leader has none until it has looked
        return bool(tiers) and all(one and dt.datetime.fromisoformat(one) > moment for one in observed)

    def wait_bound(self) -> None:
        """Wait until there is a segment on each node."""
        wait_until(lambda: condition(self.pool(), "Bound") == "True", BIND_SECONDS, "the pool to be bound")
        self.master.admin.wait_for_segments(len(NODES), deadline_seconds=BIND_SECONDS)


@pytest.fixture(scope="module")
def store(shared_world: FailoverWorld) -> Iterator[Store]:
    """A real Mooncake with the memory of every node in it."""
    require_mooncake()
    world, address = shared_world, shared_world.installed.hosts["infra-0"].address
    tier = {"name": TIER, "perNode": "64Mi", "reserve": "0"}
    selector = {"matchLabels": {"pool": "gpu"}}
    budget = {"mode": "Enforce", "nodeSelector": selector, "tiers": [tier]}
    with MooncakeMaster(address=address, log_path=world.folder / "mooncake.log") as master:
        pool = {
            "mode": "Enforce",
            "store": {"mooncake": {"master": {"address": address}}},
            "tiers": [{"name": TIER, "size": "128Mi"}],
        }
        metadata = {"name": STORED, "namespace": NAMESPACE}
        head = {"apiVersion": API_VERSION}
        world.api.create({**head, "kind": "TierBudget", "metadata": {"name": "gpu"}, "spec": budget})
        world.api.create({**head, "kind": "KVPool", "metadata": metadata, "spec": pool})
        made = Store(world, master)
        made.wait_bound()
        yield made


@pytest.fixture
def reader(store: Store) -> Iterator[Reader]:
    """Reads the same blocks all the time."""
    address = store.world.installed.hosts["infra-0"].address
    with client_of(store.master.endpoint, address) as client, Reader(client, fill(client)) as reading:
        yield reading


@pytest.fixture
def controllers(world: FailoverWorld) -> Iterator[None]:
    """What the outage does to the controllers of the cluster is not left to the next test."""
    yield
    world.installed.plane.restart_controllers()


def said(holds: Callable[[], bool]) -> bool:
    """Whether something holds, as far as anybody answers."""
    try:
        return holds()
    except (ApiError, OSError):
        return False


def nodes_are_current(world: FailoverWorld, since: dt.datetime) -> bool:
    """Whether every node reported after `since`, over a stream and under a lease."""
    nodes = [world.kvnode(node) for node in NODES]
    return all(
        dt.datetime.fromisoformat(node["status"]["lastReport"]) > since
        and condition(node, "AgentConnected") == "True"
        and condition(node, "LeaseHeld") == "True"
        for node in nodes
    )


@pytest.mark.usefixtures("controllers")
def test_an_api_outage_without_a_fault_moves_nothing_and_status_is_current_soon_after(
    world: FailoverWorld, store: Store, reader: Reader
) -> None:
    before, seats, held = world.epochs(), world.seats(), store.holds()
    moves = world.api.list(API_VERSION, "Remap", NAMESPACE)
    served = {node: world.engine_health(node) for node in NODES}
    with world.requests() as traffic:
        world.installed.plane.stop_apiserver()
        read_before = reader.right
        try:
            stays(
                lambda: {node: world.engine_health(node) for node in NODES} == served and not reader.wrong,
                OUTAGE_SECONDS,
                "engines, their epochs and what is read during the outage",
            )
            read = reader.right - read_before
        finally:
            world.installed.plane.start_apiserver()
        back_at, back_clock = time.monotonic(), dt.datetime.now(dt.UTC)

        seen = first_times(
            {
                "nodes": lambda: said(lambda: nodes_are_current(world, back_clock)),
                "pool": lambda: said(lambda: store.observed_since(back_clock)),
            },
            60,
        )
        current_after = {what: round(at - back_at, 2) for what, at in seen.items()}
        stays(lambda: world.epochs() == before, 12, "epochs in the first lease after the outage")
    failed = [sent for sent in traffic.sent if not sent.succeeded]
    figures = {"sent": len(traffic.sent), "failed": len(failed), "blocksRead": read}
    record("API outage", **figures, current=current_after)
    assert not failed, failed[:3]
    assert len(traffic.sent) > OUTAGE_SECONDS * 50
    assert world.seats() == seats
    assert [one["metadata"]["name"] for one in world.api.list(API_VERSION, "Remap", NAMESPACE)] == [
        one["metadata"]["name"] for one in moves
    ]
    assert store.holds() == held
    assert read > OUTAGE_SECONDS * BLOCKS_PER_SECOND
    assert reader.wrong == 0
    assert max(current_after.values()) <= CURRENT_SECONDS, current_after


def test_a_change_of_leader_moves_nothing_and_says_nothing_new_of_slots(world: FailoverWorld) -> None:
    before, began_at = world.epochs(), dt.datetime.now(dt.UTC)
    with world.requests() as traffic:
        world.replace_operator()
        wait_until(lambda: sample(world.metrics(), "kvpool_agents_connected") == len(NODES), 20, "all agents")
        stays(lambda: world.epochs() == before, HEARD_SECONDS, "epochs under the new leader")
    writes = [
        str(one)
        for one in world.installed.plane.audit.writes(since=began_at)
        if one.resource in ("engineslots", "remaps", "httproutes") and "kvpool-operator" in one.user
    ]
    assert [one for one in writes if "httproutes" not in one] == []
    assert len(writes) <= 1, "the route is applied once by a new leader, which knows of no earlier apply"
    assert all(sent.succeeded for sent in traffic.sent)


def test_agents_that_are_killed_at_each_step_of_a_move_make_it_once_and_lose_no_block(
    world: FailoverWorld, store: Store, reader: Reader
) -> None:
    held = store.holds()
    name, left = world.a_slot()
    move = AwaitedMove.of(world, "Restorative", name)

    def target() -> str:
        remaps = move.remaps()
        return str(remaps[0]["spec"]["to"][0]["node"]) if remaps else ""

    steps = {
        "opened": target,
        "claimed": lambda: world.kvnode(target())["spec"].get("claims"),
        "bound": lambda: world.epochs()[name] > move.epoch_before,
    }
    world.break_device(left)
    for step, reached in steps.items():
        wait_until(reached, STEP_SECONDS, f"the move to be {step}")
        for node in (left, target()):
            world.installed.process("agent", node).kill()
    began_at = time.monotonic()
    world.wait_until(move.is_over, STEP_SECONDS, "the move's end")
    record("agents killed during a move", seconds=round(time.monotonic() - began_at, 2))
    move.assert_made_once()
    assert store.holds() == held
    assert reader.wrong == 0 < reader.right
