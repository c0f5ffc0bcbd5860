"""Step: the same requests against the store, before and after kvpool added memory."""

from __future__ import annotations

from dataclasses import dataclass

from demo import places
from demo.cluster import Cluster
from demo.deployment import Deployment
from demo.replay import ReplayCounts
from demo.replay_process import ReplayPlan, run_replay
from demo.screen import Screen
from demo.trace import DEFAULT_TRACE, read_trace, reuse_ceiling

REQUESTS = 2000
BLOCK_BYTES = 8192
CLIENT_PORT = 17900


@dataclass(frozen=True)
class Trace:
    """What is replayed."""

    requests: int
    lookups: int
    ceiling: float


def trace_to_replay() -> Trace:
    """What the repository's conversation trace begins with. Raises TraceUnreadableError."""
    requests = read_trace(DEFAULT_TRACE, first=REQUESTS)
    lookups = sum(len(request.block_ids) for request in requests)
    return Trace(len(requests), lookups, reuse_ceiling(requests))


def replay(cluster: Cluster, deployment: Deployment, screen: Screen, trace: Trace, name: str) -> ReplayCounts:
    """Replay from an empty store. Raises ReplayFailedError."""
    plan = ReplayPlan(
        master=deployment.master,
        local_name=f"{cluster.client_address}:{CLIENT_PORT}",
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
