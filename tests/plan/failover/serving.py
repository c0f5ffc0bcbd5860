"""Slots that serve, and a fault of a device: where most histories of moves begin."""

from __future__ import annotations

from kvpool.api.supernode import EvidenceClass
from tests.builders.failover import World, two_racks

SLOT = "chat-decode-0"


def serving_world() -> World:
    """One slot that serves at full weight on node-1."""
    return two_racks().start().run(80)


def broken(world: World, host: str = "node-1") -> World:
    return world.report(host, "acc-0", EvidenceClass.FATAL)


def two_slots() -> World:
    """Slots on node-1 and node-2, standbys on the three others."""
    world = World()
    for number in range(1, 6):
        name = f"node-{number}"
        world.with_host(name, board=f"b{number}", rack=f"r{number % 2}")
        world.with_engine(name, "acc-0", standby=number > 2)
    return world.with_supernode().with_group(instances=2).start()
