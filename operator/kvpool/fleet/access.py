"""What the agent channel needs from the Kubernetes API, and nothing else of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kvpool.model.ids import ObjectKey


class UnavailableError(OSError):
    """The API did not answer, or not as needed; nothing is known, and trying again may help."""


@dataclass(frozen=True, slots=True)
class StoredData:
    """Contents of a Secret or ConfigMap, by key, and the resourceVersion they were read at."""

    data: Mapping[str, bytes]
    resource_version: str


@dataclass(frozen=True, slots=True)
class TokenVerdict:
    """What the API server says of a token. `extra` holds the claims about its pod and node."""

    authenticated: bool
    username: str = ""
    audiences: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class PodPlace:
    """A pod that exists, by its node (empty while it is not scheduled)."""

    node: str


class ClusterAccess(Protocol):
    """Calls with a deadline of their own. Each raises UnavailableError where the API does not answer."""

    async def read_secret(self, name: str) -> StoredData | None:
        """The Secret of the operator's namespace; None when there is none."""

    async def create_secret(self, name: str, data: Mapping[str, bytes]) -> bool:
        """Create it; False when somebody else did."""

    async def read_config_map(self, name: str) -> StoredData | None:
        """The ConfigMap of the operator's namespace; None when there is none."""

    async def write_config_map(self, name: str, data: Mapping[str, bytes], at: StoredData | None) -> bool:
        """Create it (`at` None) or replace what was read; False when it changed meanwhile."""

    async def review_token(self, token: str, audience: str) -> TokenVerdict:
        """Ask the API server about a token."""

    async def find_pod(self, key: ObjectKey, uid: str) -> PodPlace | None:
        """The pod of that name and UID; None when there is none (any more)."""
