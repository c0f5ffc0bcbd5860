"""The operator is killed right before each deciding write of a move: the move is made once all the same."""

from __future__ import annotations

import pytest

from tests.system.failover.killing import WRITES, break_through_kills
from tests.system.failover.world import FailoverWorld

pytestmark = [pytest.mark.real, pytest.mark.xdist_group("failover-killed-before")]


@pytest.mark.parametrize("write", WRITES)
def test_a_move_ends_bound_once_under_one_new_epoch_when_the_operator_is_killed_before(
    world: FailoverWorld, write: str
) -> None:
    break_through_kills(world, f"before:{write}")
