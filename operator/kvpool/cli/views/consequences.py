"""What would follow from a hypothesis: memory that is lost or gained, moves, and the spares that are left."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.cli.foresight import Foresight
from kvpool.cli.hypothesis import Hypothesis
from kvpool.cli.screen import Column, Lines, Screen, Section, Table
from kvpool.cli.views.actions import Deed, deeds, reasons, weight_changes
from kvpool.cli.views.figures import UNKNOWN, as_document, size_text
from kvpool.model.decisions import OpenRemap
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.availability import availability, spares_for
from kvpool.plan.outlook import TierOutlook, outlook
from kvpool.plan.supernodes import supernode_status

WHOLE_SHARE: Final = 0.999
"""Of the time, that spares are counted for."""


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One tier of one pool, before and after; bytes."""

    pool: str
    tier: str
    declared: int
    held: int
    lost: int
    """Of what is held: units on nodes that are lost, and all that is in them."""
    most_before: int
    most_after: int
    fits: bool
    """Whether all that is declared has a place afterwards."""


@dataclass(frozen=True, slots=True)
class SparesRow:
    """One Supernode's free devices."""

    supernode: str
    before: int
    after: int
    floor: int
    cards: int
    """Devices that slots hold."""
    whole: float | None
    """Share of the time that all are up, or a spare for each that is down; None: no rate was given."""
    wanted: int | None
    """Spares that reach `WHOLE_SHARE`; None: no rate was given, or no number of spares does."""


@dataclass(frozen=True, slots=True)
class Three:
    """The cluster as it is, right after, and when lost Nodes are deleted as well."""

    now: Foresight
    struck: Foresight
    settled: Foresight


def consequences(hypothesis: Hypothesis, three: Three, now: Instant) -> Screen:
    """Build the screen."""
    memory = _memory(three, hypothesis.nodes, now)
    spares = _spares(hypothesis, three, now)
    moves = _new(_failover(three.now), _failover(three.struck))
    stuck = _stuck(three)
    binding = _new(deeds(three.now.capacity, three.now.snapshot), _capacity(three.settled))
    findings = [
        f"KVPool {row.pool}: {row.tier} of {size_text(row.declared)} would find {size_text(row.most_after)}"
        for row in memory
        if not row.fits and (row.lost or row.most_after != row.most_before)
    ]
    findings += [f"{about}: {why}" for about, why in stuck]
    findings += [
        f"Supernode {row.supernode}: {row.after} spares would be left, spares.floor is {row.floor}"
        for row in spares
        if row.after < row.floor
    ]
    findings += [
        f"Supernode {row.supernode}: whole {row.whole:.4%} of the time with {row.after} spares; "
        f"{WHOLE_SHARE:.1%} needs {row.wanted if row.wanted is not None else 'more than 64'}"
        for row in spares
        if row.whole is not None and row.whole < WHOLE_SHARE
    ]
    when = "Then, when the lost Nodes are deleted" if hypothesis.nodes else "Then"
    sections: list[Section] = [
        Lines("If", hypothesis.lines(three.now.snapshot)),
        _memory_table(memory),
        _deed_table("Moves at once", moves, "nothing moves"),
        *([Table("Cannot move", (Column("OBJECT"), Column("WHY")), stuck)] if stuck else []),
        _spares_table(spares),
        _deed_table(when, binding, "no unit is bound or given back"),
    ]
    document = {
        "if": hypothesis.lines(three.now.snapshot),
        "memory": memory,
        "moves": moves,
        "stuck": [{"object": about, "why": why} for about, why in stuck],
        "spares": spares,
        "then": binding,
    }
    return Screen(sections, as_document(document), findings)


def _memory(three: Three, lost: Sequence[str], now: Instant) -> list[MemoryRow]:
    after = {(row.pool, row.tier): row for row in outlook(three.settled.snapshot, now)}
    return [_memory_row(row, after, three.now.snapshot, lost) for row in outlook(three.now.snapshot, now)]


def _memory_row(
    row: TierOutlook, after: dict[tuple[ObjectKey, str], TierOutlook], snapshot: Snapshot, lost: Sequence[str]
) -> MemoryRow:
    later = after[row.pool, row.tier]
    gone = sum(
        unit.size_bytes
        for node in lost
        for unit in snapshot.kvnodes[node].spec.units
        if unit.pool == str(row.pool) and unit.tier == row.tier and unit.release == "None"
    )
    return MemoryRow(
        pool=str(row.pool),
        tier=row.tier,
        declared=row.declared_bytes,
        held=row.held_bytes,
        lost=gone,
        most_before=row.most_bytes,
        most_after=later.most_bytes,
        fits=later.fits,
    )


def _spares(hypothesis: Hypothesis, three: Three, now: Instant) -> list[SparesRow]:
    """Free devices of each Supernode; a device that a new move would take is not free afterwards."""
    rows = []
    for name, supernode in sorted(three.now.snapshot.supernodes.items()):
        before = supernode_status(three.now.snapshot, supernode, now)
        struck = supernode_status(three.struck.snapshot, supernode, now)
        taken = _taken(three.struck, name) - _taken(three.now, name)
        after = max(0, struck.spares.ready - taken)
        cards, down = before.devices.active, hypothesis.down
        asked = down is not None and cards > 0
        rows.append(
            SparesRow(
                name,
                before.spares.ready,
                after,
                supernode.spec.spares.floor,
                cards,
                availability(cards, after, float(down or 0)) if asked else None,
                spares_for(cards, float(down or 0), WHOLE_SHARE) if asked else None,
            )
        )
    return rows


def _taken(foresight: Foresight, supernode: str) -> int:
    """Devices that moves which the plan opens would take in a Supernode."""
    selector = foresight.snapshot.supernodes[supernode].spec.node_selector
    opened = [action for action in foresight.failover.actions if isinstance(action, OpenRemap)]
    places = [seat for action in opened for seat in action.spec.to]
    nodes = foresight.snapshot.nodes
    return sum(
        len(seat.devices)
        for seat in places
        if seat.node in nodes and selector.matches(nodes[seat.node].labels)
    )


def _failover(foresight: Foresight) -> list[Deed]:
    plan, snapshot = foresight.failover, foresight.snapshot
    return [*deeds(plan, snapshot), *weight_changes(plan, snapshot)]


def _capacity(foresight: Foresight) -> list[Deed]:
    return deeds(foresight.capacity, foresight.snapshot)


def _new(before: Iterable[Deed], after: Iterable[Deed]) -> list[Deed]:
    known = set(before)
    return [deed for deed in dict.fromkeys(after) if deed not in known]


def _stuck(three: Three) -> list[tuple[str, str]]:
    """Reasons about slots that are new, where no move is opened."""
    known = set(reasons(three.now.failover))
    moving = {deed.about for deed in _failover(three.struck) if deed.text.startswith("open the")}
    return [
        (about, f"{reason.code}: {reason.message}")
        for about, reason in reasons(three.struck.failover)
        if about.startswith("EngineSlot ") and about not in moving and (about, reason) not in known
    ]


def _memory_table(rows: Sequence[MemoryRow]) -> Table:
    names = ("POOL", "TIER", "DECLARED", "HELD", "LOST", "COULD HOLD", "THEN", "FITS")
    right = {"DECLARED", "HELD", "LOST", "COULD HOLD", "THEN"}
    cells = [
        (
            row.pool,
            row.tier,
            size_text(row.declared),
            size_text(row.held),
            size_text(row.lost),
            size_text(row.most_before),
            size_text(row.most_after),
            "yes" if row.fits else "no",
        )
        for row in rows
    ]
    columns = tuple(Column(name, right=name in right) for name in names)
    return Table("Memory", columns, cells, "" if cells else "no pool asks for any")


def _spares_table(rows: Sequence[SparesRow]) -> Table:
    columns = (
        Column("SUPERNODE"),
        Column("SPARES", right=True),
        Column("THEN", right=True),
        Column("FLOOR", right=True),
        Column("CARDS", right=True),
        Column("WHOLE", right=True),
        Column(f"FOR {WHOLE_SHARE:.1%}", right=True),
    )
    cells = [
        (
            row.supernode,
            str(row.before),
            str(row.after),
            str(row.floor),
            str(row.cards),
            UNKNOWN if row.whole is None else f"{row.whole:.4%}",
            UNKNOWN if row.wanted is None else str(row.wanted),
        )
        for row in rows
    ]
    return Table("Spares", columns, cells, "" if cells else "no Supernode")


def _deed_table(title: str, found: Sequence[Deed], note: str) -> Table:
    columns = (Column("OBJECT"), Column("ACTION"), Column("WHY"))
    cells = [(deed.about, deed.text, deed.why) for deed in found]
    return Table(title, columns, cells, "" if cells else note)
