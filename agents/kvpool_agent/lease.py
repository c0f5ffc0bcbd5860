"""The node's lease on this machine: `kvpool.rules.lease` on CLOCK_BOOTTIME, kept over restarts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from kvpool.api.supernode import LeasePolicy
from kvpool.rules.lease import LeaseTerms, NodeLease, PeerState, PeerWord, Stand, own_word, sees_outage, stand
from kvpool_agent.timing import (
    DEFAULT_MAX_SKEW_SECONDS,
    DEFAULT_TTL_SECONDS,
    LONGEST_TTL_SECONDS,
    RENEWS_PER_TTL,
    SHORTEST_TTL_SECONDS,
)
from kvpool_keeper.contract import (
    LEASE_FILE,
    LeaseFile,
    Peer,
    boottime_ns,
    read_small,
    replace_whole,
    write_file,
)

log = structlog.get_logger()

NANOSECONDS = 1_000_000_000
MILLISECONDS = 1000
Ttl = Annotated[float, Field(ge=SHORTEST_TTL_SECONDS, le=LONGEST_TTL_SECONDS)]
STARTUP_GRACE_SECONDS = 5.0
"""A new agent first tries to renew: nobody enforced a deadline while there was none."""


@dataclass(frozen=True)
class Member:
    """One member of the guard group."""

    node: str
    peer_address: str
    host_address: str
    board: str


@dataclass(frozen=True)
class LeaseState:
    """What is kept of the lease on disk."""

    boot_id: str = ""
    deadline_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    ttl_seconds: Ttl = DEFAULT_TTL_SECONDS
    max_skew_seconds: Annotated[float, Field(ge=0, le=LONGEST_TTL_SECONDS)] = DEFAULT_MAX_SKEW_SECONDS
    strict: bool = False
    roster_revision: Annotated[int, Field(ge=0, le=2**64 - 1)] = 0
    members: tuple[Member, ...] = ()


_STATE = TypeAdapter(LeaseState)


class LeaseBook:
    """The lease, its terms and its guard group."""

    def __init__(self, file: Path, node: str, boot_id: str) -> None:
        self._file = file
        self._keeps = True
        self._node = node
        self._boot_id = boot_id
        self._lease = NodeLease()
        self._state = LeaseState(boot_id=boot_id)
        self._started_seconds = boottime_seconds()
        self._outage_seen_at_seconds: float | None = None
        self._renewing = False

    def load(self) -> None:
        """Read lease and guard group of an earlier agent of this boot."""
        try:
            state = _STATE.validate_json(read_small(self._file, follow=False))
        except FileNotFoundError:
            return
        except (OSError, ValidationError) as error:
            log.warning("lease is unreadable", file=str(self._file), error=str(error).splitlines()[0])
            return
        if state.boot_id != self._boot_id:
            return
        latest = self._started_seconds + LONGEST_TTL_SECONDS
        if state.deadline_seconds is not None and state.deadline_seconds > latest:
            log.warning("lease ends later than it can have been granted for", file=str(self._file))
            return
        self._state = state
        self._lease = NodeLease(state.deadline_seconds)

    @property
    def members(self) -> tuple[Member, ...]:
        """The guard group, this node included."""
        return self._state.members

    @property
    def roster_revision(self) -> int:
        """Of the guard group."""
        return self._state.roster_revision

    @property
    def renew_seconds(self) -> float:
        """How often to renew."""
        return self._state.ttl_seconds / RENEWS_PER_TTL

    @property
    def missed_grants(self) -> int:
        """Renews of this stream that still wait for their Grant."""
        return len(self._lease.open_renews)

    @property
    def renewing(self) -> bool:
        """Whether there is a stream on which something was granted."""
        return self._renewing

    def own_word(self) -> PeerState:
        """What this node tells its peers of its own lease."""
        return own_word(self._lease, boottime_seconds(), renewing=self._renewing)

    def remaining_seconds(self) -> float:
        """Return the time left; 0 when there is none."""
        deadline = self._lease.deadline_seconds
        return 0.0 if deadline is None else max(0.0, deadline - boottime_seconds())

    def welcomed(self, ttl_seconds: float, max_skew_seconds: float, *, strict: bool) -> None:
        """Take the terms of a new stream."""
        self.stream_ended()
        self._keep(ttl_seconds=ttl_seconds, max_skew_seconds=max_skew_seconds, strict=strict)

    def stream_ended(self) -> None:
        """Nothing is granted until the next stream; the deadline stands."""
        self._renewing = False
        self._lease = self._lease.stream_ended()

    def rostered(self, revision: int, members: Iterable[Member]) -> None:
        """Take a new guard group."""
        self._keep(roster_revision=revision, members=tuple(members))

    def renew_sent(self, seq: int) -> None:
        """Count from now; call right before sending."""
        self._lease = self._lease.renew_sent(seq, boottime_seconds())

    def granted(self, seq: int, ttl_seconds: float) -> None:
        """Extend the lease."""
        self._lease = self._lease.granted(seq, ttl_seconds)
        self._renewing = self._lease.held(boottime_seconds())
        self._keep(ttl_seconds=ttl_seconds, deadline_seconds=self._lease.deadline_seconds)

    def stand(self, words: Mapping[str, PeerWord]) -> Stand:
        """Decide what this node may do now, given what peers say of their own leases."""
        now = boottime_seconds()
        group = frozenset({self._node, *(member.node for member in self._state.members)})
        if self._lease.held(now):
            self._outage_seen_at_seconds = None
        elif sees_outage(now, group=group, own_node=self._node, words=words):
            self._outage_seen_at_seconds = now
        verdict = stand(
            self._lease,
            self._terms,
            now,
            group_size=len(group),
            outage_seen_at_seconds=self._outage_seen_at_seconds,
        )
        starting = now - self._started_seconds < STARTUP_GRACE_SECONDS
        return Stand.SERVING_ON if verdict is Stand.STOP and starting else verdict

    @property
    def _terms(self) -> LeaseTerms:
        policy = LeasePolicy.STRICT if self._state.strict else LeasePolicy.PEER_AWARE
        return LeaseTerms(self._state.ttl_seconds, self._state.max_skew_seconds, policy)

    def tell_keepers(self, directories: Iterable[Path], verdict: Stand, operator_epoch: int) -> None:
        """Write the lease into the units' directories; one that is gone is skipped."""
        content = LeaseFile(
            boot_id=self._boot_id,
            node=self._node,
            deadline_boottime_ns=int((self._lease.deadline_seconds or 0.0) * NANOSECONDS),
            ttl_ms=int(self._state.ttl_seconds * MILLISECONDS),
            max_skew_ms=int(self._state.max_skew_seconds * MILLISECONDS),
            strict=self._state.strict,
            peers=tuple(Peer(m.node, m.peer_address) for m in self._state.members if m.node != self._node),
            stand=verdict.value,
            operator_epoch=operator_epoch,
        )
        for directory in directories:
            try:
                write_file(directory / LEASE_FILE, content)
            except FileNotFoundError:
                continue  # released meanwhile
            except OSError as error:
                log.warning("lease could not be told to a keeper", unit=directory.name, error=str(error))

    def forget(self) -> None:
        """Remove what is kept on disk; from now on only this process knows. Raises OSError."""
        self._keeps = False
        self._file.unlink(missing_ok=True)

    def _keep(self, **changes: object) -> None:
        state = dataclasses.replace(self._state, boot_id=self._boot_id, **changes)  # type: ignore[arg-type] # names and types are those of the callers above
        if state == self._state:
            return
        self._state = state
        if not self._keeps:
            return
        try:
            replace_whole(self._file, _STATE.dump_json(state), durable=False)
        except OSError as error:  # the lease holds all the same; only a restarted agent would not know of it
            log.warning("lease cannot be kept on disk", file=str(self._file), error=str(error))


def boottime_seconds() -> float:
    """Return CLOCK_BOOTTIME in seconds."""
    return boottime_ns() / NANOSECONDS
