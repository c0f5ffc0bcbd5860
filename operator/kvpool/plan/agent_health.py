"""Whether an agent works: a loop that died leaves its process and its stream alive."""

from kvpool.api.conditions import ConditionType, Verdict
from kvpool.model.instant import Instant
from kvpool.model.observations import AgentView
from kvpool.plan.sizes import listed
from kvpool.rules.heartbeats import LOOP_LIMIT_SECONDS, stale_loops

_MINUTE_SECONDS = 60


def agent_healthy(agent: AgentView | None, now: Instant) -> Verdict:
    """Judge the agent by the loop ages of its newest report; Unknown while nobody hears it.

    The age of the report's figures says nothing here: it grows with a loop that is stuck.
    """
    kind = ConditionType.AGENT_HEALTHY
    if agent is None or not agent.connected or _lease_is_over(agent, now):
        return Verdict(kind, None, "AgentSilent", "its agent is not heard: nothing is known of its loops")
    if not agent.loop_age_seconds:
        return Verdict(kind, None, "NotReported", "its agent reports no loops")
    stale = stale_loops(agent.loop_age_seconds, LOOP_LIMIT_SECONDS)
    if not stale:
        text = f"each of its {len(agent.loop_age_seconds)} loops succeeded within {LOOP_LIMIT_SECONDS:.0f} s"
        return Verdict(kind, True, "LoopsSucceed", text)
    loops = listed([f"{loop} for over {_age_text(age)}" for loop, age in stale.items()])
    text = f"no success of loop {loops}, the most is {LOOP_LIMIT_SECONDS:.0f} s: see the agent's log"
    return Verdict(kind, False, "LoopStale", text)


def _lease_is_over(agent: AgentView, now: Instant) -> bool:
    ends = agent.lease.expires_at
    return ends is not None and ends <= now.monotonic_seconds


def _age_text(seconds: float) -> str:
    """Whole minutes, so that a text that is judged again and again stands still for a while."""
    minutes = int(seconds) // _MINUTE_SECONDS
    return f"{minutes} min" if minutes else f"{LOOP_LIMIT_SECONDS:.0f} s"
