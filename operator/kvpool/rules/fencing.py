"""What proves that the holder of a slot's epoch is out, and how surely."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kvpool.api.engineslot import FenceProof
from kvpool.api.supernode import FenceLevel
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import AgentView, SeatPhase, SeatView


@dataclass(frozen=True, slots=True)
class Fence:
    """A proof and the level it reaches."""

    proof: FenceProof
    level: FenceLevel


NEVER_HELD = Fence(FenceProof.NEVER_HELD, FenceLevel.PROCESS)
"""Nobody held the slot before: there is nothing to fence, so every level is met."""


def fence_of_seat(
    slot: ObjectKey,
    epoch: int,
    agent: AgentView | None,
    *,
    devices: Collection[str],
    booted_as: str,
    host_is_dead: bool,
) -> Fence | None:
    """Return what proves that `epoch` of `slot` is over on one node; None while nothing does.

    `devices` are those of the slot's seat there: a pod that holds one and never spoke to the agent may serve.
    `booted_as` is the boot id under which the node was last told of the seat, empty when unknown.
    `host_is_dead` is the finding about the host (lease run out, and witnesses). Silence of the agent alone
    proves nothing.
    """
    seat = seat_under(slot, epoch, agent)
    if seat is not None and seat.phase is SeatPhase.RELEASED:
        return Fence(FenceProof.RELEASE_ACK, _level(seat.fence_level))
    if agent is not None and seat is None and not _engine_sits(slot, agent):
        if booted_as and agent.boot_id and agent.boot_id != booted_as:
            return Fence(FenceProof.BOOT_ID_CHANGED, FenceLevel.PROCESS)
        if agent.connected and 0 < agent.plan_revision <= agent.applied_revision:
            # The agent works under a plan without the seat and knows of no engine of that epoch.
            held = _stranger_holds(devices, agent)
            return Fence(FenceProof.RELEASE_ACK, FenceLevel.CONTENT_ONLY if held else FenceLevel.PROCESS)
    if host_is_dead:
        return Fence(FenceProof.GUARD_EXPIRY, guard_level(seat))
    return None


def seat_under(slot: ObjectKey, epoch: int, agent: AgentView | None) -> SeatView | None:
    """Return what the agent last said of the slot's seat under exactly this epoch."""
    seats = agent.seats if agent is not None else ()
    return next((seat for seat in seats if seat.slot == slot and seat.epoch == epoch), None)


def guard_level(seat: SeatView | None) -> FenceLevel:
    """Return what a run-out lease proves: only what the seat's own guard enforces at the deadline."""
    return _level(seat.fence_level) if seat is not None else FenceLevel.CONTENT_ONLY


def weakest(fences: Iterable[Fence]) -> Fence:
    """Return the proof that limits a slot of several seats. Raises ValueError for none."""
    return min(fences, key=lambda fence: fence.level.rank)


def _level(text: str) -> FenceLevel:
    return FenceLevel(text) if text in FenceLevel.__members__.values() else FenceLevel.CONTENT_ONLY


def _engine_sits(slot: ObjectKey, agent: AgentView) -> bool:
    return any(engine.slot == str(slot) for engine in agent.engines)


def _stranger_holds(devices: Collection[str], agent: AgentView) -> bool:
    """Whether a pod that never spoke to the agent holds a device, or may: nobody could be asked about it."""
    known = {engine.pod_uid for engine in agent.engines}
    return any(
        not seen.observed or (seen.holder and seen.holder not in known)
        for seen in agent.devices
        if seen.id in devices
    )
