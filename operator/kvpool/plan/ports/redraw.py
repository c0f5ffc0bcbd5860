"""Another port for a queue pair that has one: when it may change, and when it should without seeing spines.

Source of the second: PLB (Qureshi et al., SIGCOMM 2022), which changes a flow's label on congestion, at idle
moments. A port may be changed on a live queue pair (`mlx5dv_modify_qp_udp_sport`), but packets under way
would then arrive out of order, which RoCE answers by sending again.
"""

from collections.abc import Callable
from typing import Final

from kvpool.plan.ports.source_port import FIRST_PORT, PORT_COUNT

SLOW_PERCENT: Final = 60
"""A flow that gets less of what was expected shares its path with another."""


def may_move(in_flight_bytes: int) -> bool:
    """Tell whether a queue pair may be given another port now: only when it is idle."""
    return in_flight_bytes == 0


def should_redraw(achieved_bytes_per_second: int, expected_bytes_per_second: int) -> bool:
    """Tell whether the last transfer was so slow that another path should be tried when next idle."""
    return 100 * achieved_bytes_per_second < SLOW_PERCENT * expected_bytes_per_second


def redrawn(port: int, below: Callable[[int], int]) -> int:
    """Another port than this one, each equally likely; `below(bound)` draws a number in [0, bound)."""
    drawn = below(PORT_COUNT - 1)
    return FIRST_PORT + (drawn if drawn < port - FIRST_PORT else drawn + 1)
