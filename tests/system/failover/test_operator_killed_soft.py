"""The operator is killed again and again around its deciding writes, in moves that nothing forces."""

from __future__ import annotations

import pytest

from tests.system.failover.killing import around, grow_through_kills, maintain_through_kills
from tests.system.failover.world import FailoverWorld

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-killed-soft"), pytest.mark.timeout(180)]


@pytest.mark.parametrize(
    "writes",
    [
        ("OpenRemap", "ClaimDevices"),
        ("BindSlot", "ReleaseClaims"),
        ("WriteRemapStatus", "WriteSlotStatus"),
    ],
    ids="+".join,
)
def test_a_voluntary_move_is_made_once_however_often_the_operator_is_killed_around(
    world: FailoverWorld, writes: tuple[str, ...]
) -> None:
    maintain_through_kills(world, *around(*writes))


@pytest.mark.parametrize(
    "writes",
    [("CreateSlot", "OpenRemap"), ("ClaimDevices", "BindSlot"), ("WriteRemapStatus", "WriteSlotStatus")],
    ids="+".join,
)
def test_a_new_slot_is_bound_once_however_often_the_operator_is_killed_around(
    world: FailoverWorld, writes: tuple[str, ...]
) -> None:
    grow_through_kills(world, *around(*writes))
