"""What the agent does once at its start, before anybody is heard: it takes over what is there."""

from __future__ import annotations

import structlog

from kvpool_agent.actions import ActionError
from kvpool_agent.binder import Binder
from kvpool_agent.journal import Journal
from kvpool_agent.units import RecordPhase, UnitView

log = structlog.get_logger()


def adopt(journal: Journal, binder: Binder) -> tuple[UnitView, ...]:
    """Load the journal, roll back what was half made, verify the rest; nothing is made anew.

    Bound units keep their data and their keeper; volatile units of an earlier boot come out Lost; objects
    without record are reported and left alone. Raises OSError.
    """
    journal.load()
    for record in list(journal.records.values()):
        if record.unit.backend not in binder.backends:
            journal.set_aside(record.key, f"this agent has no backend {record.unit.backend!r}")
        elif record.phase is RecordPhase.PREPARING:
            try:
                binder.roll_back(record)
            except ActionError as error:
                log.warning("roll back failed, to be tried again", error=str(error))
    views = binder.step_on(None, hold=True)
    log.info("adopted", units={f"{view.name} g{view.generation}": view.phase for view in views})
    return views
