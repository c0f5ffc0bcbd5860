"""Opens a move: a slot that needs a place, permission, a budget, and the nearest spare."""

from typing import Final

from kvpool.api.engineslot import EngineSlot, Seat
from kvpool.api.pdgroup import Attach, PDGroup, RoleSpec
from kvpool.api.remap import LeftBoot, Remap, RemapKind, RemapPhase, RemapSpec, StageName
from kvpool.api.supernode import Supernode
from kvpool.model.decisions import OpenRemap, Reason, Withheld
from kvpool.model.ids import DeviceRef, ObjectKey
from kvpool.model.instant import moment_text
from kvpool.plan.domains import group_domain_unknown, members_of, policy_of, supernode_of, supernode_of_group
from kvpool.plan.draft import Draft
from kvpool.plan.moves import attempt_of, devices_of, is_open, key_of, slot_of, was_cancelled_by_person
from kvpool.plan.needs import CODE_MOVED, Need
from kvpool.plan.permission import domain_hold, move_hold
from kvpool.plan.spares import Search, free_devices, seat_at

MOST_ATTEMPTS: Final = 3
"""Spares that are tried one after the other before a move waits."""

RETRY_SECONDS: Final = 60.0
"""How long it then waits before the next spare is tried."""

_CAUSE_MAX: Final = 256


def open_move(draft: Draft, slot: EngineSlot, group: PDGroup, spec: RoleSpec, need: Need) -> None:
    """Decide to open the move that the slot needs, or say what holds it."""
    key = key_of(slot)
    supernode = _supernode(draft, slot, group, need)
    hold = _hold(draft, slot, group, supernode, need)
    if hold is not None:
        draft.block(key, hold)
        return
    attempts = draft.moves.attempts_from(slot)
    waits = _waits_after(draft, attempts)
    if waits is not None:
        draft.block(key, waits)
        return
    seats = _choose(draft, slot, group, spec, need, supernode, attempts)
    if isinstance(seats, Reason):
        draft.block(key, seats)
        return
    _open(draft, slot, need, seats, 1 + max((attempt_of(remap) for remap in attempts), default=0))


def _supernode(draft: Draft, slot: EngineSlot, group: PDGroup, need: Need) -> Supernode | None:
    """The Supernode whose spares and policy apply: the one being left, else the group's."""
    if need.seats:
        return supernode_of(draft.snapshot, need.seats[0].node)
    return supernode_of_group(draft.snapshot, group)


def _hold(
    draft: Draft,
    slot: EngineSlot,
    group: PDGroup,
    supernode: Supernode | None,
    need: Need,
) -> Reason | None:
    """Return what forbids the move now; None when it may be opened."""
    if slot.metadata.deletion_timestamp is not None:
        return Reason("Deleting", "the slot is being deleted")
    key = key_of(slot)
    unknown = domain_hold(draft.snapshot, need.seats)
    if unknown is not None:
        return Reason(unknown.code, f"{need.cause}; {unknown.message}")
    unread = group_domain_unknown(draft.snapshot, group)
    if unread is not None:
        return unread
    if group.spec.supernode_ref is not None and supernode_of_group(draft.snapshot, group) is None:
        name = group.spec.supernode_ref.name
        return Reason("SupernodeNotFound", f"Supernode {name} does not exist: create it or drop supernodeRef")
    held = move_hold(draft.snapshot, group, supernode, need.kind)
    if held is not None:
        draft.withhold(Withheld("EngineSlot", key, f"{need.kind.value} move: {need.cause}", held))
        return held
    for remap in draft.moves.of(key):
        if was_cancelled_by_person(remap) and need.kind is RemapKind.VOLUNTARY:
            text = (
                f"{need.cause}; Remap {remap.metadata.name} was cancelled: delete it to allow the move again"
            )
            return Reason("Cancelled", text)
    return _budget(draft, supernode, need)


def _budget(draft: Draft, supernode: Supernode | None, need: Need) -> Reason | None:
    if need.kind is RemapKind.INITIAL:
        return None
    budgets = policy_of(supernode).budgets
    most = (budgets.voluntary if need.kind is RemapKind.VOLUNTARY else budgets.restorative).max_in_flight
    running = _in_flight(draft, supernode, need.kind)
    if running < most:
        return None
    text = (
        f"{need.cause}; {running} {need.kind.value} moves run, budgets.{need.kind.value.lower()}.maxInFlight"
    )
    return Reason("Budget", f"{text} is {most}")


def _in_flight(draft: Draft, supernode: Supernode | None, kind: RemapKind) -> int:
    """Count the domain's moves of one kind that run or are opened by this plan; blocked ones have yielded."""
    domain = supernode.metadata.name if supernode is not None else None
    running = 0
    for remap in draft.snapshot.remaps.values():
        if not is_open(remap) or remap.spec.kind is not kind or slot_of(remap) in draft.blocked:
            continue
        if remap.status.phase is not RemapPhase.BLOCKED and _domain_of(draft, remap.spec.from_) == domain:
            running += 1
    return running + draft.opened_in.get((domain, kind), 0)


def _domain_of(draft: Draft, seats: tuple[Seat, ...]) -> str | None:
    supernode = supernode_of(draft.snapshot, seats[0].node) if seats else None
    return supernode.metadata.name if supernode is not None else None


def _waits_after(draft: Draft, attempts: tuple[Remap, ...]) -> Reason | None:
    """After several spares were lost one after the other, the move yields for a while."""
    failed = [remap for remap in attempts if remap.status.phase is RemapPhase.FAILED]
    if len(failed) < MOST_ATTEMPTS or failed[-1].status.finished_at is None:
        return None
    again = draft.now.monotonic_of(failed[-1].status.finished_at) + RETRY_SECONDS
    if draft.now.monotonic_seconds >= again:
        return None
    draft.look_again(again)
    text = f"{len(failed)} spares were lost one after the other, the last: {failed[-1].status.blocked_reason}"
    return Reason("NoSpare", f"{text}; tried again in {again - draft.now.monotonic_seconds:.0f} s")


def _choose(
    draft: Draft,
    slot: EngineSlot,
    group: PDGroup,
    spec: RoleSpec,
    need: Need,
    supernode: Supernode | None,
    attempts: tuple[Remap, ...],
) -> tuple[Seat, ...] | Reason:
    """Return a new seat for each one being left, or why there is none."""
    avoid = frozenset(
        ref
        for remap in attempts
        if remap.status.phase is RemapPhase.FAILED
        for ref in devices_of(remap.spec.to)
    )
    chosen: list[Seat] = []
    taken: set[DeviceRef] = set()
    for leaving in need.seats or (None,):
        search = Search(draft, group, slot, spec, need.kind, leaving, supernode, avoid | taken)
        place = search.best()
        if place is None:
            return _no_spare(need, spec, search)
        taken.update(place.refs)
        chosen.append(seat_at(leaving.index if leaving is not None else 0, place))
    short = _below_floor(draft, need, supernode, chosen)
    return short if short is not None else tuple(chosen)


def _no_spare(need: Need, spec: RoleSpec, search: Search) -> Reason:
    wanted = (
        f"{spec.devices_per_pod} free devices on one node" if spec.devices_per_pod > 1 else "a free device"
    )
    if spec.attach is Attach.OBSERVE and need.kind is not RemapKind.INITIAL and need.code != CODE_MOVED:
        text = f"{need.cause}; attach Observe moves no engine, and none of the role's pods waits elsewhere"
        return Reason("AttachObserve", f"{text}: restart the pod, or use attach Standby")
    text = f"{need.cause}; no place for it ({wanted} is needed; passed over: {search.shortage()})"
    return Reason("NoSpare", text)


def _below_floor(draft: Draft, need: Need, supernode: Supernode | None, chosen: list[Seat]) -> Reason | None:
    """A voluntary move leaves the floor of spares; dead devices may use the last one."""
    if need.kind is not RemapKind.VOLUNTARY or supernode is None:
        return None
    free = set(free_devices(draft, members_of(draft.snapshot, supernode)))
    left = len(free - set(devices_of(chosen)))
    floor = supernode.spec.spares.floor
    if left >= floor:
        return None
    text = f"{need.cause}; the move would leave {left} spare devices of {len(free)}, spares.floor is {floor}"
    return Reason("SpareFloor", text)


def _open(draft: Draft, slot: EngineSlot, need: Need, seats: tuple[Seat, ...], attempt: int) -> None:
    key = key_of(slot)
    remap = ObjectKey(key.namespace, f"{key.name}-{slot.spec.epoch}-{attempt}")
    first = min(need.first_evidence, draft.now.monotonic_seconds)
    spec = RemapSpec(
        operator_epoch=draft.snapshot.leadership.operator_epoch,
        slot=key.name,
        from_=need.seats,
        from_boots=_boots(draft, slot.spec.seats),
        to=seats,
        from_epoch=slot.spec.epoch,
        epoch=draft.take_epoch(),
        kind=need.kind,
        cause=need.cause[:_CAUSE_MAX],
        incident=_incident(draft, slot, need),
        first_evidence_at=moment_text(draft.now.wall_at(first)),
    )
    places = ", ".join(f"{seat.node}/{'+'.join(seat.devices)}" for seat in seats)
    reason = Reason(need.code, f"{need.cause}; goes to {places}")
    draft.act(OpenRemap(remap, spec, slot.metadata.uid, reason))
    draft.mark(remap, StageName.DETECT)
    draft.opened.add(key)
    draft.reserved.update(devices_of(seats))
    domain = (_domain_of(draft, need.seats), need.kind)
    draft.opened_in[domain] = draft.opened_in.get(domain, 0) + 1
    draft.explain(f"slot {key}", reason)


def _incident(draft: Draft, slot: EngineSlot, need: Need) -> str:
    """The incident behind the move; without a trouble of its own, that of the attempt before."""
    if need.trouble is not None:
        return draft.incidents.of(need.trouble, draft.now)
    return next((remap.spec.incident for remap in draft.moves.attempts_from(slot)[::-1]), "")


def _boots(draft: Draft, seats: tuple[Seat, ...]) -> tuple[LeftBoot, ...]:
    """The present boots of the nodes that hold the slot's epoch, as far as they are known."""
    found = {}
    for seat in seats:
        agent = draft.snapshot.agents.get(seat.node)
        kvnode = draft.snapshot.kvnodes.get(seat.node)
        written = kvnode.status.boot_id if kvnode is not None else ""
        found[seat.node] = agent.boot_id if agent is not None else written
    return tuple(LeftBoot(node=node, boot_id=boot) for node, boot in sorted(found.items()) if boot)
