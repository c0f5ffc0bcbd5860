"""Free TCP ports that an outgoing connection cannot take before the server binds them."""

from __future__ import annotations

import random
import socket

# Below the kernel's usual range of ephemeral ports (32768 and up): only another server can take one.
LOWEST, HIGHEST = 18000, 32000
ATTEMPTS = 200


def free_ports(count: int, address: str = "127.0.0.1") -> list[int]:
    """`count` different ports nobody listens on now. Raises OSError when none can be found."""
    source = random.SystemRandom()
    found: list[int] = []
    for _ in range(ATTEMPTS):
        if len(found) == count:
            return found
        port = source.randrange(LOWEST, HIGHEST)
        if port not in found and _is_free(port, address):
            found.append(port)
    raise OSError(f"found {len(found)} of {count} free ports between {LOWEST} and {HIGHEST} on {address}")


def free_port(address: str = "127.0.0.1") -> int:
    """One port nobody listens on now."""
    return free_ports(1, address)[0]


def _is_free(port: int, address: str) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
