"""Blocks in the real store, and how many of them are still there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demo.neighbours.mooncake import MooncakeAdmin
from tests.system.blocks import BLOCK, client_of, fill

if TYPE_CHECKING:
    from mooncake.store import MooncakeDistributedStore

CLIENT_ADDRESS = "10.88.0.1"
"""Of the sandbox on the cluster's network."""


@dataclass
class Stored:
    """`keys` were put; each is read back whole to be counted as there."""

    client: MooncakeDistributedStore
    admin: MooncakeAdmin
    keys: list[str]

    @classmethod
    @contextmanager
    def put(cls, master: str, admin: MooncakeAdmin) -> Iterator[Stored]:
        """Put blocks over all segments; they are removed in the end."""
        with client_of(master, CLIENT_ADDRESS) as client:
            yield cls(client, admin, fill(client))

    def lost(self) -> list[str]:
        """Keys whose block does not come back right."""
        return [key for key in self.keys if self.client.get(key) != BLOCK]
