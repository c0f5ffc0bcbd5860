"""Blocks in the real store, and how many of them are still there."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from demo.neighbours.mooncake import ADMIN_TIMEOUT_SECONDS, MooncakeAdmin
from devcluster.rest import JsonObject
from tests.e2e.kernel import Mapping
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
    last_lost: set[str] | None = None
    """What the newest count said; None when nobody counted."""

    @classmethod
    @contextmanager
    def put(cls, master: str, admin: MooncakeAdmin) -> Iterator[Stored]:
        """Put blocks over all segments; they are removed in the end."""
        with client_of(master, CLIENT_ADDRESS) as client:
            yield cls(client, admin, fill(client))

    def lost(self, among: Collection[str] = ()) -> set[str]:
        """Keys (all, unless some are named) whose block does not come back right; every call reads anew."""
        self.last_lost = {key for key in among or self.keys if self.client.get(key) != BLOCK}
        return self.last_lost

    def only_in(self, mappings: Sequence[Mapping]) -> set[str]:
        """Keys whose every replica lies in one of these units, as the master has it now."""
        query = f"{self.admin.base_url}/batch_query_keys?keys={','.join(self.keys)}"
        with urllib.request.urlopen(query, timeout=ADMIN_TIMEOUT_SECONDS) as answer:
            found = json.loads(answer.read())["data"]
        return {key for key in self.keys if all(_is_in(one, mappings) for one in found[key]["values"])}


def _is_in(replica: JsonObject, mappings: Sequence[Mapping]) -> bool:
    address, _, _ = replica["transport_endpoint_"].rpartition(":")
    return any(
        address == one.address and one.start <= replica["buffer_address_"] < one.end for one in mappings
    )
