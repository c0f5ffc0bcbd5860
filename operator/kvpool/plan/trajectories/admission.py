"""Admission of programs by the memory that they will need, so that none recomputes what another pushed out.

    budget   C   = theta1 * device + theta2 * host                  tokens
    reserve  rho = context + beta * (final - context)               grows turn by turn
    admit    while sum of rho over the admitted + rho <= C, else defer; bypass when all fit
    order    aged first, then group progress, own progress, arrival

Source: the router of LongCat-2.5 (release notes, November 2026, read second hand): admission by the capacity
of both tiers and by token totals, nearest completion first. Aging: smallest-first admission made large
programs wait 404 s against 0.5 s (ThunderAgent, issue 46). Bypass and the form of the reserve are kvpool's
own derivation: with ample memory, holding programs back only costs time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvpool.plan.trajectories.program import Program, group_progress


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """How much of the memory is planned with, and how long anybody waits."""

    device_share: float = 0.95
    host_share: float = 0.90
    growth_share: float = 0.5
    """beta: how much of the growth that is still to come is reserved now."""
    age_ns: int = 600_000_000_000
    """A program that has waited this long goes to the front, and nobody overtakes it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Who may hold memory, by program."""

    bypass: bool
    """All fit: every one is admitted, and turns are served in order of arrival."""
    admitted: tuple[int, ...]
    """In the order in which their turns are served."""
    deferred: tuple[int, ...]
    """In the order in which they come next."""
    reserved_tokens: int
    """Sum of what the admitted reserve."""
    budget_tokens: int


def budget_tokens(device_tokens: int, host_tokens: int, settings: AdmissionSettings) -> int:
    """Return how many tokens may be reserved."""
    return int(settings.device_share * device_tokens + settings.host_share * host_tokens)


def reserve_tokens(program: Program, settings: AdmissionSettings) -> int:
    """Return what a program reserves now: what it holds and part of what it will."""
    growth = max(0, program.final_tokens - program.context_tokens)
    return program.context_tokens + int(settings.growth_share * growth)


def decide(
    programs: Sequence[Program], capacity_tokens: int, now_ns: int, settings: AdmissionSettings
) -> Decision:
    """Decide anew over all programs of groups that live; finished members count for their group's progress.

    `capacity_tokens`: of `budget_tokens`. The admitted stay so, even if their growth went past the budget:
    what to do when memory does run out is `eviction_order`. When nobody is admitted the first is, whatever it
    needs: waiting would not make it smaller.
    """
    live = [program for program in programs if not program.finished]
    reserves = {program.ident: reserve_tokens(program, settings) for program in live}
    if sum(reserves.values()) <= capacity_tokens:
        order = sorted(live, key=lambda one: (one.arrival_ns, one.ident))
        everyone = tuple(one.ident for one in order)
        return Decision(True, everyone, (), sum(reserves.values()), capacity_tokens)
    ordered = _ordered(live, group_progress(programs), now_ns, settings)
    admitted = [one.ident for one in ordered if one.admitted]
    reserved = sum(reserves[ident] for ident in admitted)
    deferred: list[int] = []
    closed = False
    for one in ordered:
        if one.admitted:
            continue
        if not closed and (not admitted or reserved + reserves[one.ident] <= capacity_tokens):
            admitted.append(one.ident)
            reserved += reserves[one.ident]
            continue
        deferred.append(one.ident)
        closed = closed or _aged(one, now_ns, settings)
    return Decision(False, tuple(admitted), tuple(deferred), reserved, capacity_tokens)


def eviction_order(programs: Sequence[Program]) -> tuple[int, ...]:
    """Return whose memory goes first when it ran out, whole programs only.

    Finished members first, then the lowest group progress, then the lowest own, the latest first. Those with
    a turn on the engine are not in it.
    """
    progress = group_progress(programs)
    idle = [one for one in programs if not one.computing]
    idle.sort(
        key=lambda one: (
            not one.finished,
            progress[one.group],
            one.progress,
            -one.arrival_ns,
            -one.ident,
        )
    )
    return tuple(one.ident for one in idle)


def finished_groups(programs: Sequence[Program]) -> tuple[int, ...]:
    """Return the groups whose last member has finished: all their memory is released at once."""
    alive = {one.group for one in programs if not one.finished}
    return tuple(sorted({one.group for one in programs} - alive))


def _aged(program: Program, now_ns: int, settings: AdmissionSettings) -> bool:
    return not program.admitted and now_ns - program.waiting_since_ns >= settings.age_ns


def _ordered(
    live: Sequence[Program], progress: Mapping[int, float], now_ns: int, settings: AdmissionSettings
) -> list[Program]:
    def key(one: Program) -> tuple[bool, float, float, int, int]:
        aged = _aged(one, now_ns, settings)
        # Among the aged, who has waited longest: progress made the others wait.
        rank = (0.0, 0.0) if aged else (-progress[one.group], -one.progress)
        return not aged, *rank, one.waiting_since_ns if aged else one.arrival_ns, one.ident

    return sorted(live, key=key)
