"""The share of new requests that each healthy member gets, where a router takes weights and not a choice.

    speed    = B / step(B, B * context)             tokens a second of a full batch, from calibrated constants
    headroom = 1 below `easy_below`, falling to `least_headroom` when all KV is used
    share    = speed * headroom, the best member gets 100

kvpool's own derivation: where one member takes its share of a large number of requests, those that finish
sooner are those that get requests in proportion to their speed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.plan.timing.model import TimingModel

FULL_SHARE: Final = 100


@dataclass(frozen=True, slots=True)
class ShareSettings:
    """What a share is computed at, and how far it has to be off before it is changed."""

    batch: int = 32
    """Sequences of the batch that speeds are compared at."""
    context_tokens: int = 2048
    """Of each of them."""
    easy_below: float = 0.7
    """KV usage up to which a member takes its full share."""
    least_headroom: float = 0.1
    """What is left of a share when all KV is used: a member with none at all would never be tried again."""
    step: int = 5
    """A share changes when it is off by at least this much: every change is a write to each router."""


@dataclass(frozen=True, slots=True)
class Member:
    """What is known of one member."""

    name: str
    healthy: bool
    timing: TimingModel | None
    """Calibrated constants; None when there are none that can be believed."""
    kv_usage: float | None
    """Share of KV in use, 0 to 1; None when it was not reported lately."""


@dataclass(frozen=True, slots=True)
class Shares:
    """One share for each member, and what they were made from."""

    by_name: Mapping[str, int]
    """0 to 100; 0 for those that are not healthy."""
    uncalibrated: tuple[str, ...]
    """Healthy members without constants: with any, all healthy ones count as equally fast."""


def shares(
    members: Sequence[Member], settings: ShareSettings, previous: Mapping[str, int] | None = None
) -> Shares:
    """Return the share of each member. Those that are off by less than a step keep the `previous` one."""
    healthy = [member for member in members if member.healthy]
    speeds = {member.name: _speed(member.timing, settings) for member in healthy if member.timing is not None}
    uncalibrated = tuple(member.name for member in healthy if member.name not in speeds)
    raw = {
        member.name: (1.0 if uncalibrated else speeds[member.name]) * headroom(member.kv_usage, settings)
        for member in healthy
    }
    best = max(raw.values(), default=1.0)
    wanted = {name: max(1, round(FULL_SHARE * value / best)) for name, value in raw.items()}
    return Shares(
        {member.name: _settled(member.name, wanted, previous or {}, settings.step) for member in members},
        uncalibrated,
    )


def headroom(kv_usage: float | None, settings: ShareSettings) -> float:
    """What a member takes of its share at that use of its KV: 1 down to `least_headroom`; 1 when unknown."""
    if kv_usage is None or kv_usage <= settings.easy_below:
        return 1.0
    above = min(1.0, (kv_usage - settings.easy_below) / (1.0 - settings.easy_below))
    return 1.0 - above * (1.0 - settings.least_headroom)


def _speed(timing: TimingModel, settings: ShareSettings) -> float:
    return settings.batch / timing.step_ns(settings.batch, settings.batch * settings.context_tokens)


def _settled(name: str, wanted: Mapping[str, int], previous: Mapping[str, int], step: int) -> int:
    share = wanted.get(name, 0)
    before = previous.get(name, 0)
    # A member that goes or comes back is never made to wait, nor is one that is to have the full share.
    if 0 in (share, before) or share == FULL_SHARE or abs(share - before) >= step:
        return share
    return before
