"""What is known of ports and spines: computed where the hash is known, else from probes, for a while."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from kvpool.plan.ports.hashes import FlowTuple, SwitchHash
from kvpool.plan.ports.learning import PortMatrix
from kvpool.plan.ports.source_port import FIRST_PORT, LAST_PORT

DEFAULT_TTL_NS: Final = 3_600 * 1_000_000_000
"""An hour: paths change with the topology, and not every change is reported."""


def ports_by_hash(switch: SwitchHash, flow: FlowTuple) -> Mapping[int, int]:
    """Spine -> lowest source port for a flow through a switch whose hash is known.

    The flow's own source port does not matter. A spine that no port reaches is absent.
    """
    found: dict[int, int] = {}
    for port in range(FIRST_PORT, LAST_PORT + 1):
        found.setdefault(switch.bucket(flow.with_port(port)), port)
        if len(found) == switch.buckets:
            break
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class _Entry:
    ports: Mapping[int, int]
    until_ns: int


class PortTable:
    """Spine -> port for each pair of ends, forgotten after a time or with the next change of the topology."""

    __slots__ = ("_entries", "_matrix", "_ttl_ns")

    def __init__(self, ttl_ns: int = DEFAULT_TTL_NS) -> None:
        self._ttl_ns = ttl_ns
        self._entries: dict[Hashable, _Entry] = {}
        self._matrix: PortMatrix | None = None

    @property
    def matrix(self) -> PortMatrix | None:
        """The fabric's matrix, if it was learned and nothing changed since."""
        return self._matrix

    def learn_fabric(self, matrix: PortMatrix) -> None:
        """Keep the fabric's matrix until the topology changes."""
        self._matrix = matrix

    def learn_offset(self, pair: Hashable, offset: int, now_ns: int) -> None:
        """Keep a pair whose first port takes spine `offset`.

        Raises:
            LookupError: when no matrix is known: learn the fabric first.
        """
        if self._matrix is None:
            raise LookupError("the offset of a pair says nothing before the fabric's matrix is learned")
        self.learn_ports(pair, self._matrix.ports(offset), now_ns)

    def learn_ports(self, pair: Hashable, ports: Mapping[int, int], now_ns: int) -> None:
        """Keep spine -> port of a pair."""
        self._entries[pair] = _Entry(ports, now_ns + self._ttl_ns)

    def ports(self, pair: Hashable, now_ns: int) -> Mapping[int, int]:
        """Spine -> port of a pair; empty when it must be probed (again)."""
        entry = self._entries.get(pair)
        if entry is None:
            return {}
        if entry.until_ns <= now_ns:
            del self._entries[pair]
            return {}
        return entry.ports

    def topology_changed(self) -> None:
        """Forget everything: a link or switch came, went or was set up anew, and any path may be another."""
        self._entries.clear()
        self._matrix = None
