"""WEKA's form of coding-agent sessions: JSON lines, one session each, with think times and subagents.

Schema: callanjfox/kv-cache-tester. A session: `block_size`, `tool_tokens`, `system_tokens`, `requests`;
block ids mean something only inside it. A request: `t` seconds from the session's start, `in` and `out`
tokens, `hash_ids` of the prompt's full blocks (see `merged_blocks`), `think_time` seconds before it,
`api_time` seconds it took. An entry of type `subagent` holds requests of its own; its `t` is its end, and
it started `duration_ms` before.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kvpool.sim.workloads.fields import NS_PER_MS, NS_PER_SECOND, check_cover, json_object, time_ns, tokens
from kvpool.sim.workloads.merged_blocks import NO_BRANCH, Branch, Numbers, SessionBlocks, covered, ranges
from kvpool.sim.workloads.reading import MOST_BLOCKS, MOST_OF_A_SESSION, LineError, Reading, count
from kvpool.sim.workloads.request import Request

MERGED_TOKENS: Final = 512
SUBAGENT: Final = "subagent"


def recognises(keys: Collection[str]) -> bool:
    """Whether the first line's keys are those of this form."""
    return {"block_size", "requests"}.issubset(keys)


class WekaReader:
    """Each line a session; the sessions start `session_gap_ns` apart.

    A subagent is a session of its own: its first request comes at its recorded time, the others follow.
    Sessions with equal numbers of tool and system tokens share that prefix, as they sent the same tools and
    instructions; all models are taken for one.
    """

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._numbers = Numbers()
        self._small_tokens = 0
        self._lines = 0
        self._sessions = 0
        self.block_tokens = MERGED_TOKENS
        self.notes: dict[str, int] = {}

    def read(self, text: str) -> Sequence[Request]:
        """Return the requests of one session and of its subagents."""
        record = json_object(text)
        self._set_blocks(tokens(record, "block_size"))
        # A refused line must leave nothing behind: its counts are taken over when all of it was read.
        notes = dict(self.notes)
        blocks = SessionBlocks(self._numbers, self.block_tokens // self._small_tokens, self.block_tokens)
        agents = _Agents(blocks, self._small_tokens, self._sessions, notes)
        made = agents.requests(record, self._lines * self._reading.session_gap_ns)
        self._lines += 1
        self._sessions = agents.next_session
        self.notes = notes
        return made

    def finish(self) -> Sequence[Request]:
        """Nothing waits for the end."""
        return ()

    def _set_blocks(self, small: int) -> None:
        if small < 1:
            raise LineError(f"`block_size` is {small}, and must be at least 1 token")
        if self._small_tokens and small != self._small_tokens:
            raise LineError(
                f"`block_size` is {small}, and was {self._small_tokens} in the sessions before it"
            )
        self._small_tokens = small
        self.block_tokens = small * (self._reading.merged_blocks or max(1, MERGED_TOKENS // small))


class _Agents:
    """The agent of one session and its subagents."""

    def __init__(self, blocks: SessionBlocks, small: int, next_session: int, notes: dict[str, int]) -> None:
        self._blocks = blocks
        self._small_tokens = small
        self._notes = notes
        self._held = 0
        self.next_session = next_session

    def requests(self, record: Mapping[str, Any], start_ns: int) -> list[Request]:
        """Return what an agent asks for, which began at `start_ns`, and its subagents, and theirs."""
        entries = record.get("requests")
        if not isinstance(entries, list):
            raise LineError("`requests` is missing or no list, and must hold the session's requests")
        agent = _Agent(
            self.next_session, start_ns, tokens(record, "tool_tokens"), tokens(record, "system_tokens")
        )
        self.next_session += 1
        made: list[Request] = []
        for index, entry in enumerate(entries):
            if not isinstance(entry, dict):
                raise LineError(f"`requests[{index}]` is no object")
            try:
                if entry.get("type") == SUBAGENT:
                    count(self._notes, "subagents")
                    made += self.requests(entry, start_ns + _began_ns(entry))
                else:
                    made += self._request(entry, agent)
            except LineError as bad:
                raise LineError(f"`requests[{index}]`: {bad}") from None
        return made

    def _request(self, entry: Mapping[str, Any], agent: "_Agent") -> Sequence[Request]:
        at_ns = time_ns(entry, "t", NS_PER_SECOND)
        if at_ns < agent.last_ns:
            last = agent.last_ns / NS_PER_SECOND
            raise LineError(f"`t` is {entry['t']}, and the request before it is later, at {last:.3f}")
        agent.last_ns = at_ns
        if "think_time" in entry:
            agent.thought_ns += time_ns(entry, "think_time", NS_PER_SECOND)
        else:
            count(self._notes, "think_time_by_the_clock")
            agent.thought_ns += max(0, at_ns - agent.ended_ns)
        agent.ended_ns = at_ns + (time_ns(entry, "api_time", NS_PER_SECOND) if "api_time" in entry else 0)
        prompt, output = tokens(entry, "in"), tokens(entry, "out")
        ids = ranges(entry, "hash_ids")
        if covered(ids) > MOST_OF_A_SESSION:
            # A range of some characters may stand for more ids than fit into memory one by one.
            raise LineError(
                f"`hash_ids` has {covered(ids)} ids of {self._small_tokens} tokens, and at most "
                f"{MOST_OF_A_SESSION} of one prompt fit into memory"
            )
        check_cover(covered(ids), prompt, self._small_tokens, "hash_ids", "in", remedy="")
        if not prompt or not output:
            count(self._notes, "zero_tokens")
            return ()
        if agent.started:
            agent.branch = self._blocks.follow(ids, agent.branch)
        else:
            agent.branch = self._blocks.begin(ids, agent.tool_tokens, agent.system_tokens)
        request = Request(
            agent.start_ns + at_ns,
            prompt,
            output,
            agent.branch.blocks,
            client=str(entry.get("model", "")),
            session=agent.session,
            think_ns=agent.thought_ns if agent.started else -1,
        )
        agent.started = True
        agent.thought_ns = 0
        self._held += len(request.blocks)
        if self._held > MOST_BLOCKS or self._blocks.distinct > MOST_OF_A_SESSION:
            raise LineError(
                f"the session has {self._held} blocks so far, {self._blocks.distinct} of them different; at "
                f"most {MOST_BLOCKS}, {MOST_OF_A_SESSION} of them different, fit into memory"
            )
        return (request,)


def _began_ns(entry: Mapping[str, Any]) -> int:
    """Return when a subagent began: its time is its end, or its launch if nobody waited for it."""
    told_ns = time_ns(entry, "t", NS_PER_SECOND)
    if entry.get("duration_ms") is None:
        return told_ns
    return max(0, told_ns - time_ns(entry, "duration_ms", NS_PER_MS))


class _Agent:
    """Where an agent is in its requests."""

    __slots__ = (
        "branch",
        "ended_ns",
        "last_ns",
        "session",
        "start_ns",
        "started",
        "system_tokens",
        "thought_ns",
        "tool_tokens",
    )

    def __init__(self, session: int, start_ns: int, tool_tokens: int, system_tokens: int) -> None:
        self.session = session
        self.start_ns = start_ns
        self.tool_tokens = tool_tokens
        self.system_tokens = system_tokens
        self.branch: Branch = NO_BRANCH
        self.started = False
        self.thought_ns = 0
        self.last_ns = 0
        self.ended_ns = 0
