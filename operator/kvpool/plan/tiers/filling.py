"""How many sessions each tier holds, fastest tier first.

    exclusive tiers    sum of floor(C_i / s)
    inclusive tiers    floor(max C_i / s): a tier adds only what it holds beyond the tiers before it

kvpool's own derivation; C_i is the tier's capacity and s the bytes of a session.
"""

from collections.abc import Sequence

from kvpool.plan.tiers.stack import Stack


def places(stack: Stack, session_bytes: int) -> tuple[int, ...]:
    """Sessions that each tier adds to those before it."""
    if stack.exclusive:
        return tuple(tier.capacity_bytes // session_bytes for tier in stack.tiers)
    added, most = [], 0
    for tier in stack.tiers:
        holds = tier.capacity_bytes // session_bytes
        added.append(max(0, holds - most))
        most = max(most, holds)
    return tuple(added)


def filled(room: Sequence[int], sessions: int) -> tuple[int, ...]:
    """So many sessions in the tiers that have this room; what is too many goes to the last tier."""
    held, left = [], sessions
    for places_here in room[:-1]:
        here = min(places_here, left)
        held.append(here)
        left -= here
    return (*held, left)
