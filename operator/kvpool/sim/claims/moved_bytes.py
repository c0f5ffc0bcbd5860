"""What the claims about eviction rules share: a workload over three tiers, and the bytes that cross between
them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from kvpool.plan.known_name import one_of
from kvpool.plan.placement.policies import NAMES, rule_named
from kvpool.sim.tiers.accesses import Access, accesses_of, distinct_objects
from kvpool.sim.tiers.exclusive import ExclusiveTiers
from kvpool.sim.tiers.flows import Flows
from kvpool.sim.tiers.replay import replay, replay_with_lookahead
from kvpool.sim.workloads.request import Workload

TUMKUR: Final = "Tumkur et al., Where Should the KV Cache Live?, arXiv 2609.16215 (Sep 2026)"
DRAM_RATIO: Final = 8
"""Times HBM; the third tier holds all the rest."""
Rule = Annotated[str, one_of("eviction rule", NAMES)]


@dataclass(frozen=True, slots=True)
class Replay:
    """A workload that is ready to be run through tiers of several sizes."""

    accesses: Sequence[Access]
    distinct: int

    @classmethod
    def of(cls, workload: Workload) -> "Replay":
        """Prepare a workload."""
        accesses = accesses_of(workload, oracle=True)
        return cls(accesses, distinct_objects(accesses))

    def run(self, hbm_one_in: int, rule: str, ahead_ns: int | None = None) -> Flows:
        """Run it with one in so many of the distinct chunks in HBM, and eight times as many in DRAM."""
        hbm = max(1, self.distinct // hbm_one_in)
        tiers = ExclusiveTiers([hbm, DRAM_RATIO * hbm, self.distinct], rule_named(rule))
        if ahead_ns is None:
            return replay(tiers, self.accesses)
        return replay_with_lookahead(tiers, self.accesses, ahead_ns)

    def compared(self, hbm_one_in: int, rules: Sequence[str]) -> "Compared":
        """Run several rules; the first one is the base."""
        return Compared(hbm_one_in, {rule: self.run(hbm_one_in, rule) for rule in rules})


@dataclass(frozen=True, slots=True)
class Compared:
    """Rules on one workload at one size of HBM; the first rule is the base."""

    hbm_one_in: int
    flows: Mapping[str, Flows]

    def hbm(self, rule: str) -> float:
        """What crosses the HBM boundary, over the base's."""
        return self.flows[rule].boundaries[0].total / self._base.boundaries[0].total

    def reused(self, rule: str) -> float:
        """The same, of chunks that were used more than once."""
        return self.flows[rule].boundaries[0].reused / max(1, self._base.boundaries[0].reused)

    def both(self, rule: str) -> float:
        """What crosses both boundaries, over the base's."""
        return _all(self.flows[rule]) / _all(self._base)

    @property
    def _base(self) -> Flows:
        return next(iter(self.flows.values()))


def _all(flows: Flows) -> int:
    return sum(boundary.total for boundary in flows.boundaries)
