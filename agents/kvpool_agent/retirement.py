"""How an agent takes its leave when kvpool is uninstalled: units given back, nothing kept on its host."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable

import structlog

from kvpool_agent.epochs import EpochGate
from kvpool_agent.lease import LeaseBook
from kvpool_agent.local_api import LocalApi
from kvpool_agent.places import Places
from kvpool_agent.plan_apply import plan_by_name
from kvpool_agent.seats import SeatRecord, SeatState
from kvpool_agent.units import Record, RecordPhase, UnitPlan, UnitView
from kvpool_keeper.contract import Release

log = structlog.get_logger()


class Retirement:
    """Whether the operator wants this agent to retire, and whether it has.

    What is removed is not made anew by this process; a new one begins as on its first day.
    """

    def __init__(self, places: Places, gate: EpochGate, lease: LeaseBook, local: LocalApi) -> None:
        self._places = places
        self._gate = gate
        self._lease = lease
        self._local = local
        self._trouble = ""
        self.asked = False
        self.begun = False
        """Whether something was removed that this process will not make anew."""
        self.done = False

    async def go_on(self, units: Iterable[UnitView]) -> bool:
        """Remove what is kept once nothing is held, given all units; True when it was done just now."""
        if not self.asked or self.done or not holds_nothing(units, self._local.book.records.values()):
            return False
        self.begun = True
        try:
            await self._local.forget()
            await asyncio.to_thread(self._clear)
        except OSError as error:
            if str(error) != self._trouble:
                log.warning("what is kept on the host cannot be removed, to be tried again", error=str(error))
            self._trouble = str(error)
            return False
        self.done = True
        log.info("retired: nothing is kept on this host any more")
        return True

    def _clear(self) -> None:
        self._gate.forget()
        self._lease.forget()
        self._places.clear()


def everything_back(records: Iterable[Record]) -> dict[str, UnitPlan]:
    """Return the plan that gives back all that is recorded, by name; what the operator does not name too."""
    return plan_by_name(
        record.unit
        if record.unit.release is not Release.NONE
        else dataclasses.replace(record.unit, release=Release.DRAIN)
        for record in records
        if record.phase is not RecordPhase.RELEASED
    )


def holds_nothing(units: Iterable[UnitView], seats: Iterable[SeatRecord]) -> bool:
    """Whether neither a unit nor anything of its name is left here, and no engine sits on a seat."""
    return not any(True for _ in units) and all(seat.state is SeatState.RELEASED for seat in seats)
