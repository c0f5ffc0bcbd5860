"""Instances as routers see them, built by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvpool.plan.routing.pending import Pending
from kvpool.plan.routing.views import Ask, Objective, Overlap, Running
from kvpool.plan.timing.model import LinkModel, TimingModel

CARD = TimingModel(15e6, 192_308, 2.0, 20e6, 120_000, 800)
LINK = LinkModel(1_000_000, 8_000_000_000)
INTERACTIVE = Objective(3_000_000_000, 60_000_000, 100)
BATCH = Objective(6_000_000_000, 90_000_000, 50)


@dataclass(frozen=True)
class Sequence:
    remaining_tokens: int
    reserved_tokens: int
    context_tokens: int
    objective: Objective = INTERACTIVE


@dataclass
class Seen:
    """One instance with the sequences that run on it."""

    ran: list[Sequence] = field(default_factory=list)
    capacity_tokens: int = 54_000
    timing: TimingModel = CARD
    link: LinkModel = LINK
    backlog_ns: int = 0
    prefill_tokens: int = 0
    waiting: int = 0
    pending: Pending = field(init=False)

    def __post_init__(self) -> None:
        self.pending = Pending()
        for one in self.ran:
            self.pending.enter(
                one.remaining_tokens, one.reserved_tokens, one.objective.weight, one.objective.tpot_ns
            )

    @property
    def running(self) -> int:
        return len(self.ran)

    @property
    def kv_tokens(self) -> int:
        return sum(one.context_tokens for one in self.ran)

    @property
    def reserved_tokens(self) -> int:
        return sum(one.reserved_tokens for one in self.ran)

    @property
    def outstanding(self) -> int:
        return len(self.ran) + self.waiting

    def sequences(self) -> Iterable[Running]:
        return self.ran


@dataclass
class SeenPrefill:
    backlog_ns: int = 0
    outstanding: int = 0
    prefill_tokens: int = 0
    timing: TimingModel = CARD
    link: LinkModel = LINK


class Counter:
    """Draws 0, 1, 2, ... so that a test knows what comes."""

    def __init__(self) -> None:
        self.drawn = 0

    def below(self, bound: int) -> int:
        self.drawn += 1
        return (self.drawn - 1) % bound

    def uniform(self) -> float:
        self.drawn += 1
        return 0.5


def ask(
    prompt: int = 1000,
    expected: int = 200,
    bound: int | None = None,
    objective: Objective = INTERACTIVE,
    overlaps: tuple[int, ...] = (),
    bytes_per_token: int = 0,
) -> Ask:
    held = tuple(Overlap(device_tokens=tokens) for tokens in overlaps)
    return Ask(prompt, expected, bound or expected, objective, bytes_per_token, held)
