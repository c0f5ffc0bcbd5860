"""How old reports may be, and when silence says more about the observer than about the nodes."""

from collections.abc import Iterable, Mapping
from typing import Final

from kvpool.model.decisions import Reason
from kvpool.model.instant import Instant, moment_text
from kvpool.model.observations import AgentView, StoreView
from kvpool.model.snapshot import Snapshot
from kvpool.plan.sizes import listed

STALE_AFTER_SECONDS: Final = 10.0
"""Three report periods."""

HEARING_SECONDS: Final = 11.0
"""One lease and its skew: by then every agent that lives has said Hello to a new leader."""


def is_fresh(agent: AgentView | None, now: Instant) -> bool:
    """Tell whether an agent's newest figures may be believed."""
    return agent is not None and now.monotonic_seconds - agent.reported_at <= STALE_AFTER_SECONDS


def is_fresh_store(store: StoreView | None, now: Instant) -> bool:
    """Tell whether a store answered lately."""
    return (
        store is not None
        and store.reachable
        and now.monotonic_seconds - store.asked_at <= STALE_AFTER_SECONDS
    )


def silence_text(agent: AgentView | None, now: Instant) -> str:
    """Say since when an agent has been silent; the moment, not the age, so that the text stands still."""
    if agent is None:
        return "its agent has not been heard yet"
    return f"its agent's last report is from {moment_text(now.wall_at(agent.reported_at))}"


def stale_moments(agents: Iterable[AgentView], now: Instant) -> list[float]:
    """When each report that is fresh now stops being so (monotonic seconds)."""
    return [agent.reported_at + STALE_AFTER_SECONDS + 0.001 for agent in agents if is_fresh(agent, now)]


def hearing_until(snapshot: Snapshot, nodes: Iterable[str], now: Instant) -> float | None:
    """Until when a new leader waits for these nodes' agents; None when it heard all or waited enough."""
    end = snapshot.leadership.since + HEARING_SECONDS
    if now.monotonic_seconds >= end or all(node in snapshot.agents for node in nodes):
        return None
    return end


def observer_suspect(agents: Mapping[str, AgentView], now: Instant) -> Reason | None:
    """Say so when most agents fell silent within one report lifetime: the fault is likely on this side."""
    silent = [
        agent
        for agent in agents.values()
        if not is_fresh(agent, now) and (agent.leaving_until or 0.0) <= now.monotonic_seconds
    ]
    if len(silent) < 2 or 2 * len(silent) <= len(agents):
        return None
    moments = [agent.reported_at for agent in silent]
    if max(moments) - min(moments) > STALE_AFTER_SECONDS:
        return None
    return Reason(
        "MostAgentsSilent",
        f"{len(silent)} of {len(agents)} agents fell silent within {max(moments) - min(moments):.1f} s "
        f"({listed(agent.node for agent in silent)}): nothing is concluded about their nodes",
    )
