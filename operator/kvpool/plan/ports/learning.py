"""Learning which port goes over which spine, from probes that tell the spine of one port.

With a hash that is linear over XOR (`kvpool.plan.ports.hashes`) and S a power of two,

    bucket(pair, port) = bucket(pair, first) ^ M (port ^ first)

with one 14-column matrix M for the whole fabric: 14 probes give M, one more gives the offset of each pair.
With any other S the low bits of the hash do not decide alone, and ports are tried until every spine was seen:
S * H_S tries on average (coupon collector). Derivation: kvpool's own, from the linearity of CRC and Toeplitz.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from kvpool.plan.ports.source_port import FIRST_PORT, PORT_BITS, PORT_COUNT

Probe = Callable[[int], int]
"""Source port -> spine that a packet of this pair took from it, 0 to S - 1."""

CHECK_PORTS: Final = (0xFFFF, 0xD555, 0xEAAA, 0xF0F0)
"""Ports with many bits set: a hash that is not linear passes all four once in S^4."""
BUDGET_FACTOR: Final = 3
"""How many times the mean of a full cover is spent on one pair at most."""


class NotLinearError(Exception):
    """A fabric does not follow one matrix; its text says at which port."""


@dataclass(frozen=True, slots=True)
class PortMatrix:
    """M: what flipping each of the 14 port bits does to the spine, for every pair of a fabric."""

    spines: int
    """A power of two."""
    columns: tuple[int, ...]
    """For port bit 0 to 13: the XOR of spine numbers."""

    def delta(self, port: int) -> int:
        """M (port ^ first port): the spine of a port, relative to that of the first port."""
        bits = port ^ FIRST_PORT
        mixed = 0
        for bit, column in enumerate(self.columns):
            if bits >> bit & 1:
                mixed ^= column
        return mixed

    def deltas(self) -> Mapping[int, int]:
        """Relative spine -> the lowest port that gives it. Fewer than S when M has not full rank.

        Flows of one pair take ports of distinct relative spines and so distinct spines: no offset is needed.
        """
        return _deltas(self.columns)

    def ports(self, offset: int) -> Mapping[int, int]:
        """Spine -> port for a pair whose first port takes spine `offset`."""
        return dict(sorted((offset ^ delta, port) for delta, port in self.deltas().items()))


@lru_cache(maxsize=64)
def _deltas(columns: tuple[int, ...]) -> Mapping[int, int]:
    """Every relative spine that combinations of columns give, and the lowest port for each."""
    found = {0: FIRST_PORT}
    for bit, column in enumerate(columns):
        for delta, port in tuple(found.items()):
            found.setdefault(delta ^ column, port ^ (1 << bit))
    return MappingProxyType(dict(sorted(found.items())))


def learn_matrix(probe: Probe, spines: int) -> tuple[PortMatrix, int]:
    """Learn a fabric from one pair: the matrix, and the offset of that pair.

    Costs 19 probes: the pair's own, one for each of 14 bits, and four that must agree.

    Raises:
        ValueError: when `spines` is no power of two: use `cover_by_probing`.
        NotLinearError: when a check disagrees: the hash is another, or the paths changed meanwhile.
    """
    if spines < 1 or spines & (spines - 1):
        raise ValueError(f"{spines} spines: a port matrix needs a power of two; probe each pair instead")
    offset = probe(FIRST_PORT)
    columns = tuple(probe(FIRST_PORT ^ (1 << bit)) ^ offset for bit in range(PORT_BITS))
    matrix = PortMatrix(spines, columns)
    for port in CHECK_PORTS:
        expected, seen = offset ^ matrix.delta(port), probe(port)
        if expected != seen:
            raise NotLinearError(
                f"port {port} took spine {seen} where the matrix says {expected}: this fabric's hash is not "
                f"linear or its paths changed; probe each pair instead"
            )
    return matrix, offset


@dataclass(frozen=True, slots=True)
class Cover:
    """What trying ports of one pair found."""

    ports: Mapping[int, int]
    """Spine -> the first port that took it."""
    probes: int
    spines: int

    @property
    def complete(self) -> bool:
        """Every spine was seen."""
        return len(self.ports) == self.spines


def cover_by_probing(probe: Probe, spines: int, order: Iterable[int], budget: int | None = None) -> Cover:
    """Try ports in the given order until every spine was seen, or `budget` probes were spent.

    `order` should be random: neighbouring ports need not take different spines. Budget None: 3 * S * H_S.
    """
    allowed = budget if budget is not None else round(BUDGET_FACTOR * expected_probes(spines))
    found: dict[int, int] = {}
    spent = 0
    for port in order:
        if spent >= allowed or len(found) == spines:
            break
        spent += 1
        found.setdefault(probe(port), port)
    return Cover(dict(sorted(found.items())), spent, spines)


def expected_probes(spines: int) -> float:
    """S * H_S: random ports tried on average until every one of S spines was seen (coupon collector)."""
    return spines * sum(1.0 / rank for rank in range(1, spines + 1))


def random_ports(below: Callable[[int], int]) -> Iterable[int]:
    """Endless source ports, each drawn by `below(bound)`, which returns a number in [0, bound)."""
    while True:
        yield FIRST_PORT + below(PORT_COUNT)
