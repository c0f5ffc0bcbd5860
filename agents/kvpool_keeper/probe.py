"""Asks the agents of other nodes about their leases, and whether their hosts answer at all.

A peer answers `GET /lease` on its agent's peer port with JSON `{"node": ..., "lease": "Held" | "Lost"}`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

from kvpool.rules.lease import PeerState

PROBE_SECONDS = 0.5
MOST_AT_ONCE = 32
MOST_ANSWER_BYTES = 4096
LEASE_PATH = "/lease"


@dataclass(frozen=True)
class Probe:
    """What one probe found. A refused connection counts as reached: something on the host said no."""

    reached: bool
    state: PeerState | None
    """The peer's word, when its agent gave one."""


NOT_REACHED = Probe(reached=False, state=None)


async def ask_peers(addresses: dict[str, str]) -> dict[str, Probe]:
    """Probe many peers at once, `MOST_AT_ONCE` at a time; both keys and results are by node name."""
    places = asyncio.Semaphore(MOST_AT_ONCE)

    async def ask_one(node: str, address: str) -> tuple[str, Probe]:
        async with places:
            return node, await ask_peer(node, address)

    return dict(await asyncio.gather(*(ask_one(node, address) for node, address in addresses.items())))


async def ask_peer(node: str, address: str) -> Probe:
    """Ask the agent of `node` at `address` (host:port) for its word, within PROBE_SECONDS.

    An answer that names another node reached a host, but is no word of this peer.
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        return NOT_REACHED
    reached = False
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(host, int(port))
            reached = True
            try:
                writer.write(f"GET {LEASE_PATH} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                text = await reader.read(MOST_ANSWER_BYTES)
            finally:
                writer.close()
    except ConnectionRefusedError:
        return Probe(reached=True, state=None)
    except (OSError, TimeoutError, ValueError, OverflowError):  # the last two: no address, no port
        return Probe(reached=reached, state=None)
    return Probe(reached=True, state=parse_word(node, text))


async def hosts_that_answer(hosts: Mapping[str, str], port: int) -> frozenset[str]:
    """Return the nodes of whose host anything answers on `port`, a refusal included; many at once.

    `hosts` are addresses by node name.
    """
    places = asyncio.Semaphore(MOST_AT_ONCE)

    async def ask_one(host: str) -> bool:
        async with places:
            return await _answers(host, port)

    answers = await asyncio.gather(*(ask_one(host) for host in hosts.values()))
    return frozenset(node for node, answered in zip(hosts, answers, strict=True) if answered)


async def _answers(host: str, port: int) -> bool:
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError, ValueError, OverflowError):  # the last two: no address, no port
        return False
    writer.close()
    return True


def parse_word(node: str, answer: bytes) -> PeerState | None:
    """Read a peer's word from its HTTP answer; None when it is none, or of another node."""
    body = answer.partition(b"\r\n\r\n")[2]
    try:
        word = json.loads(body)
        return PeerState(word["lease"]) if word["node"] == node else None
    except (ValueError, KeyError, TypeError):
        return None
