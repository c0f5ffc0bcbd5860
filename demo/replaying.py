"""Step: the same requests against the store, before and after kvpool added memory."""

from __future__ import annotations

import os
from dataclasses import dataclass

from demo import places
from demo.deployment import Deployment
from demo.replay import ReplayCounts
from demo.replay_process import ReplayPlan, run_replay
from demo.screen import Screen
from demo.trace import DEFAULT_TRACE, read_trace, reuse_ceiling
from devcluster import sandbox

REQUESTS = 2000
BLOCK_BYTES = 8192
LOCAL_NAME = f"{sandbox.OWN_ADDRESS}:17900"


@dataclass(frozen=True)
class Trace:
    """What is replayed."""

    requests: int
    lookups: int
    ceiling: float


def find_trace(screen: Screen) -> Trace | None:
    """Read the trace; None, with a line that says so, when this machine has none (never under strict).

    Raises TraceUnreadableError when the trace is there and cannot be read, or has to be there.
    """
    if not DEFAULT_TRACE.exists() and os.environ.get("KVPOOL_STRICT") != "1":
        screen.note(f"No trace at {DEFAULT_TRACE}: the replays are left out, and there will be no hit rates.")
        return None
    requests = read_trace(DEFAULT_TRACE, first=REQUESTS)
    lookups = sum(len(request.block_ids) for request in requests)
    return Trace(len(requests), lookups, reuse_ceiling(requests))


def replay(deployment: Deployment, screen: Screen, trace: Trace, name: str) -> ReplayCounts:
    """Replay from an empty store. Raises ReplayFailedError."""
    plan = ReplayPlan(
        master=deployment.master.endpoint,
        local_name=LOCAL_NAME,
        requests=trace.requests,
        block_bytes=BLOCK_BYTES,
    )
    counts = run_replay(plan, places.LOGS / f"replay-{name}", show=lambda line: screen.say(f"  {line}"))
    screen.expect(
        counts.lookups == trace.lookups and not counts.wrong_bytes and not counts.failed_gets,
        f"{counts.lookups} of {trace.lookups} blocks looked up, {counts.wrong_bytes} with wrong bytes, "
        f"{counts.failed_gets} failed",
    )
    return counts
