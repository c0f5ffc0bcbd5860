"""How long a killed agent's successor takes to adopt what is there, by its own log and the kernel's clocks.

The time for which it could run and no processor was free is left out: it says how busy the machine is, and
nothing of the agent. What it sleeps, computes or waits for from disks and others counts.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from devcluster.process import ManagedProcess
from devcluster.rest import JsonObject
from tests.harness.waiting import wait_until

RESTART_SECONDS = 20.0
ADOPTION_LIMIT_SECONDS = 30.0
NANOSECOND = 1e-9


@dataclass
class Life:
    """One run of an agent."""

    log: Path
    pid: int
    held_up: list[tuple[float, float]] = field(default_factory=list)
    """When it was looked at, and for how long it had waited for a processor by then; seconds."""

    @property
    def started_at(self) -> float:
        """Unix time of its start, by the kernel."""
        ticks = int(Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - age

    def look(self) -> JsonObject | None:
        """What it wrote of its adoption; None while it wrote nothing."""
        waited = int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) * NANOSECOND
        self.held_up.append((time.time(), waited))
        lines = [line for line in self.log.read_text().splitlines() if '"event": "adopted"' in line]
        told: JsonObject = json.loads(lines[-1]) if lines else {}
        return told if lines and moment_of(told) >= self.started_at else None

    def seconds_until(self, moment: float) -> float:
        """From its start until `moment`, less what it had waited for a processor when last seen before."""
        held_up = max((waited for at, waited in self.held_up if at <= moment), default=0.0)
        return moment - self.started_at - held_up


def moment_of(line: JsonObject) -> float:
    """Unix time of a line of the log."""
    return dt.datetime.fromisoformat(line["timestamp"]).timestamp()


def adopt_after_kill(agent: ManagedProcess) -> tuple[float, JsonObject]:
    """Kill an agent; the seconds in which the next one adopted what is there, and the units' phases."""
    before = agent.pid
    agent.kill()
    wait_until(
        lambda: agent.running and agent.pid != before, RESTART_SECONDS, "the agent to be started again"
    )
    life = Life(agent.log, agent.pid)
    told = wait_until(life.look, ADOPTION_LIMIT_SECONDS, "the agent to say what it adopted")
    assert told is not None
    return life.seconds_until(moment_of(told)), told["units"]
