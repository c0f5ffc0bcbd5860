"""What a slot needs: its first place, another place, or nothing. One kind of move for all of them."""

from dataclasses import dataclass
from typing import Final

from kvpool.api.engineslot import EngineSlot, Seat
from kvpool.api.kvnode import DeviceVerdict
from kvpool.api.pdgroup import Attach, PDGroup, RoleSpec
from kvpool.api.remap import RemapKind, RemapPhase
from kvpool.model.instant import Instant
from kvpool.model.observations import HOLDER_UNKNOWN, SeatPhase
from kvpool.model.snapshot import Snapshot
from kvpool.plan.attachment import REATTACH_GRACE_SECONDS, attached
from kvpool.plan.domains import maintenance_of, supernode_of
from kvpool.plan.draft import Draft
from kvpool.plan.freshness import is_fresh
from kvpool.plan.incidents import Trouble
from kvpool.plan.moves import key_of
from kvpool.plan.settling import ORPHAN_SECONDS
from kvpool.rules.fencing import seat_under

CODE_MAINTENANCE: Final = "Maintenance"
CODE_MOVED: Final = "EngineMoved"


@dataclass(frozen=True, slots=True)
class Need:
    """Why a slot has to move, and which of its seats it leaves."""

    kind: RemapKind
    code: str
    cause: str
    """For people."""
    seats: tuple[Seat, ...]
    first_evidence: float
    """Monotonic seconds."""
    trouble: Trouble | None = None
    """Who is in trouble; None when nobody is, or an earlier attempt tells."""

    @property
    def is_urgent(self) -> bool:
        """Whether the old place serves nothing any more: nothing is waited for but the fence."""
        return self.kind is RemapKind.RESTORATIVE


def need_of(draft: Draft, slot: EngineSlot, spec: RoleSpec, group: PDGroup) -> Need | None:
    """Return what the slot needs; None when it is where it should be, or nothing is known for sure."""
    if not slot.spec.seats:
        return Need(RemapKind.INITIAL, "Unbound", "no place yet", (), _created(slot, draft.now))
    found = [need for seat in slot.spec.seats if (need := _of_seat(draft, slot, seat)) is not None]
    urgent = [need for need in found if need.is_urgent]
    if urgent:
        return _together(urgent)
    if draft.moves.is_withdrawn(slot):
        text = "the engine was told to stop for a move that did not come about"
        since = draft.now.monotonic_seconds
        return Need(RemapKind.RESTORATIVE, "Withdrawn", text, slot.spec.seats, since)
    unclaimed = _unclaimed(draft, slot)
    if unclaimed is not None:
        since = draft.now.monotonic_seconds
        return Need(RemapKind.RESTORATIVE, "ClaimLost", unclaimed, slot.spec.seats, since)
    if found:
        return _together(found)
    if spec.attach is Attach.OBSERVE and _left_by_its_engine(draft, slot, group, spec):
        text = "its engine pod left the seat; seats follow pods"
        return Need(RemapKind.RESTORATIVE, CODE_MOVED, text, slot.spec.seats, draft.now.monotonic_seconds)
    return None


def _unclaimed(draft: Draft, slot: EngineSlot) -> str | None:
    """Say which device of the slot's seats is not claimed for it: its KVNode was deleted or edited by hand.

    Its engine is told to stop for that, so it takes a new epoch to serve again, there or elsewhere. A new
    leader looks at lists that are not of one moment, and waits until they have caught up.
    """
    key = str(key_of(slot))
    for seat in slot.spec.seats:
        kvnode = draft.snapshot.kvnodes.get(seat.node)
        if kvnode is None:
            continue
        mine = {claim.device for claim in kvnode.spec.claims if claim.slot == key}
        missing = sorted(set(seat.devices) - mine)
        if not missing:
            continue
        caught_up = draft.snapshot.leadership.since + ORPHAN_SECONDS
        if draft.now.monotonic_seconds < caught_up:
            draft.look_again(caught_up)
            return None
        return f"{seat.node}/{'+'.join(missing)}: the claim is gone from the KVNode, which somebody changed"
    return None


def _of_seat(draft: Draft, slot: EngineSlot, seat: Seat) -> Need | None:
    host = draft.judgement.host(seat.node)
    if draft.judgement.is_dead(seat.node):
        since = host.since if host.since is not None else draft.now.monotonic_seconds
        text = f"{seat.node}: {host.reason.message}"
        trouble = Trouble(seat.node, since)
        return Need(RemapKind.RESTORATIVE, host.reason.code, text, (seat,), since, trouble)
    worst: Need | None = None
    for device in seat.devices:
        need = _of_device(draft, slot, seat, device)
        if need is not None and (worst is None or (need.is_urgent and not worst.is_urgent)):
            worst = need
    return worst


def _of_device(draft: Draft, slot: EngineSlot, seat: Seat, device: str) -> Need | None:
    finding = draft.judgement.device(seat.node, device)
    name = f"{seat.node}/{device}"
    now = draft.now.monotonic_seconds
    since = finding.since if finding.since is not None else now
    uuid = _uuid_seen(draft.snapshot, seat.node, device)
    trouble = Trouble(f"{name}/{uuid}", since)
    if finding.verdict is DeviceVerdict.FAULTY:
        text = f"{name}: {finding.reason.message}"
        return Need(RemapKind.RESTORATIVE, finding.reason.code, text, (seat,), since, trouble)
    replaced = replaced_uuid(draft.snapshot, slot, seat.node, device)
    if replaced is not None:
        text = f"{name}: was {replaced[0]} when it was claimed and is {replaced[1]} now"
        exchange = Trouble(f"{name}/{replaced[0]} became {replaced[1]}", None)
        return Need(RemapKind.RESTORATIVE, "DeviceReplaced", text, (seat,), now, exchange)
    if finding.move_wanted:
        text = f"{name}: {finding.reason.message}"
        return Need(RemapKind.VOLUNTARY, finding.reason.code, text, (seat,), since, trouble)
    entry = maintenance_of(supernode_of(draft.snapshot, seat.node), seat.node, device)
    if entry is not None:
        text = f"{name}: under maintenance" + (f" ({entry.reason})" if entry.reason else "")
        asked = Trouble(f"maintenance of {entry.node}: {entry.reason}", None)
        return Need(RemapKind.VOLUNTARY, CODE_MAINTENANCE, text, (seat,), now, asked)
    return None


def replaced_uuid(snapshot: Snapshot, slot: EngineSlot, node: str, device: str) -> tuple[str, str] | None:
    """Return the UUIDs that a claimed device had and has, when they differ: another device is there now."""
    kvnode = snapshot.kvnodes.get(node)
    has = _uuid_seen(snapshot, node, device)
    claims = kvnode.spec.claims if kvnode is not None else ()
    slot_name = str(key_of(slot))
    had = next((claim.uuid for claim in claims if (claim.device, claim.slot) == (device, slot_name)), "")
    return (had, has) if had and has and had != has else None


def _uuid_seen(snapshot: Snapshot, node: str, device: str) -> str:
    """The UUID that the device's agent reports; empty when it reports none."""
    agent = snapshot.agents.get(node)
    seen = agent.devices if agent is not None else ()
    return next((view.uuid for view in seen if view.id == device), "")


def _left_by_its_engine(draft: Draft, slot: EngineSlot, group: PDGroup, spec: RoleSpec) -> bool:
    """Whether the agents surely see no engine on the slot, which had one under its epoch.

    The status forgets that engine at once, and its replacement may come much later: so the move that bound
    the slot is asked, too, whether it came to its end.
    """
    snapshot, now = draft.snapshot, draft.now
    bound = draft.moves.bound_by(slot)
    had_one = bound is not None and bound.status.phase is RemapPhase.SUCCEEDED
    if not (had_one or slot.status.attached) or attached(snapshot, slot, draft.pods, now) is not None:
        return False
    for seat in slot.spec.seats:
        agent = snapshot.agents.get(seat.node)
        if agent is None or not agent.connected or not is_fresh(agent, now):
            return False
        if now.monotonic_seconds < agent.hello_at + REATTACH_GRACE_SECONDS:
            return False
        if any(view.holder == HOLDER_UNKNOWN for view in agent.devices if view.id in seat.devices):
            return False  # kubelet does not say who holds them: nobody left for sure
        view = seat_under(key_of(slot), slot.spec.epoch, agent)
        if view is not None and view.phase is SeatPhase.STOPPING:
            return False
    return True


def _together(needs: list[Need]) -> Need:
    """One move for all seats that have to be left."""
    first = min(needs, key=lambda need: need.first_evidence)
    seats = tuple(seat for need in needs for seat in need.seats)
    return Need(first.kind, first.code, first.cause, seats, first.first_evidence, first.trouble)


def _created(slot: EngineSlot, now: Instant) -> float:
    made = slot.metadata.creation_timestamp
    return min(now.monotonic_seconds, now.monotonic_of(made)) if made else now.monotonic_seconds
