"""Groups, their slots with weights and epochs, and the moves that are under way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvpool.api import EngineSlot, PDGroup, Remap
from kvpool.api.conditions import ConditionType, find_condition
from kvpool.api.engineslot import Seat
from kvpool.cli.screen import Column, Table
from kvpool.cli.views.figures import UNKNOWN, age_seconds, age_text, count_text, joined
from kvpool.cli.views.own import path_of
from kvpool.model.instant import Instant


@dataclass(frozen=True, slots=True)
class OutputRow:
    """What one output of a group is known to carry."""

    name: str
    revision: int
    acknowledged: str
    """Observed, Assumed or Pending."""
    age_seconds: float | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One PDGroup."""

    group: str
    mode: str
    slots: int
    serving: int
    ratio: str
    revision: int
    outputs: tuple[OutputRow, ...]
    reason: str
    """Of its condition Ready."""


@dataclass(frozen=True, slots=True)
class SlotRow:
    """One EngineSlot."""

    slot: str
    role: str
    places: tuple[str, ...]
    """`node/device+device`, one for each seat."""
    epoch: int
    weight_asked: int
    weight_acknowledged: int
    serving: str
    """True, False or Unknown."""
    reason: str
    engine: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class MoveRow:
    """One Remap that is not over."""

    remap: str
    kind: str
    origin: tuple[str, ...]
    target: tuple[str, ...]
    phase: str
    blocked_reason: str
    stage: str
    """The last stage that is written down."""
    age_seconds: float | None
    cause: str


def group_rows(groups: Iterable[PDGroup], now: Instant) -> list[GroupRow]:
    """Every group."""
    return [_group_row(group, now) for group in groups]


def _group_row(group: PDGroup, now: Instant) -> GroupRow:
    status = group.status
    ready = find_condition(status.conditions, ConditionType.READY)
    return GroupRow(
        group=path_of(group),
        mode=group.spec.mode,
        slots=status.slots,
        serving=status.serving,
        ratio=status.ratio.current or UNKNOWN,
        revision=status.routing.revision,
        outputs=tuple(
            OutputRow(output.name, output.revision, output.acknowledged, age_seconds(output.at, now))
            for output in status.routing.outputs
        ),
        reason=ready.reason if ready is not None else UNKNOWN,
    )


def group_table(rows: Sequence[GroupRow]) -> Table:
    """The table of groups; outputs as `name revision acknowledgement`."""
    columns = (
        Column("GROUP"),
        Column("MODE"),
        Column("SERVING", right=True),
        Column("RATIO", right=True),
        Column("REVISION", right=True),
        Column("ACKNOWLEDGED"),
        Column("REASON"),
    )
    cells = [
        (
            row.group,
            row.mode,
            count_text(row.serving, row.slots),
            row.ratio,
            str(row.revision),
            joined(f"{output.name} {output.revision} {output.acknowledged}" for output in row.outputs),
            row.reason,
        )
        for row in rows
    ]
    return Table("Groups", columns, cells, "" if rows else "no groups")


def slot_rows(slots: Iterable[EngineSlot]) -> list[SlotRow]:
    """Every slot."""
    return [_slot_row(slot) for slot in slots]


def _slot_row(slot: EngineSlot) -> SlotRow:
    status = slot.status
    serving = find_condition(status.conditions, ConditionType.SERVING)
    blocked = find_condition(status.conditions, ConditionType.BLOCKED)
    said = blocked if blocked is not None and blocked.status == "True" else serving
    attached = status.attached
    return SlotRow(
        slot=path_of(slot),
        role=slot.spec.role,
        places=places_of(slot.spec.seats),
        epoch=slot.spec.epoch,
        weight_asked=status.weight_asked,
        weight_acknowledged=status.weight_acknowledged,
        serving=serving.status if serving is not None else "Unknown",
        reason=said.reason if said is not None else UNKNOWN,
        engine=attached.pod_name if attached is not None else "",
        endpoint=attached.endpoint if attached is not None else "",
    )


def places_of(seats: Iterable[Seat]) -> tuple[str, ...]:
    """`node/device+device` of each seat."""
    return tuple(f"{seat.node}/{'+'.join(seat.devices)}" for seat in seats)


def slot_table(rows: Sequence[SlotRow], note: str = "") -> Table:
    """The table of slots; weights as acknowledged of asked."""
    columns = (
        Column("SLOT"),
        Column("ROLE", wide=True),
        Column("PLACE"),
        Column("EPOCH", right=True),
        Column("WEIGHT", right=True),
        Column("SERVING"),
        Column("REASON"),
        Column("ENGINE", wide=True),
        Column("ENDPOINT", wide=True),
    )
    cells = [
        (
            row.slot,
            row.role,
            joined(row.places),
            str(row.epoch),
            count_text(row.weight_acknowledged, row.weight_asked),
            row.serving,
            row.reason,
            row.engine or UNKNOWN,
            row.endpoint or UNKNOWN,
        )
        for row in rows
    ]
    return Table("Slots", columns, cells, note)


def open_moves(remaps: Iterable[Remap], now: Instant) -> list[MoveRow]:
    """Every Remap that is not over."""
    return [_move_row(remap, now) for remap in remaps if not remap.status.phase.is_final]


def _move_row(remap: Remap, now: Instant) -> MoveRow:
    stages = remap.status.stages
    return MoveRow(
        remap=path_of(remap),
        kind=remap.spec.kind,
        origin=places_of(remap.spec.from_),
        target=places_of(remap.spec.to),
        phase=remap.status.phase,
        blocked_reason=remap.status.blocked_reason,
        stage=stages[-1].name if stages else "",
        age_seconds=age_seconds(remap.spec.first_evidence_at, now),
        cause=remap.spec.cause,
    )


def move_table(rows: Sequence[MoveRow]) -> Table:
    """The table of open moves; the age is counted from the first evidence."""
    columns = (
        Column("OPEN MOVE"),
        Column("KIND"),
        Column("FROM"),
        Column("TO"),
        Column("PHASE"),
        Column("AGE", right=True),
        Column("CAUSE"),
    )
    cells = [
        (
            row.remap,
            row.kind,
            joined(row.origin),
            joined(row.target),
            f"{row.phase} {row.blocked_reason}".strip(),
            age_text(row.age_seconds),
            row.cause,
        )
        for row in rows
    ]
    return Table("Open moves", columns, cells)
