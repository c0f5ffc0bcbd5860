"""The agent channel's access to the Kubernetes API, over `kvpool.cluster`."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any

from kvpool.api.labels import MANAGED_BY, MANAGER
from kvpool.cluster import reads, writes
from kvpool.cluster.errors import AlreadyExists, ApiError, Conflict, Gone
from kvpool.cluster.resources import CONFIG_MAPS, PODS, SECRETS, TOKEN_REVIEWS, Obj, Resource
from kvpool.cluster.rest import Rest
from kvpool.control import managers
from kvpool.fleet.access import PodPlace, StoredData, TokenVerdict, UnavailableError
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import PodFact

_TIMEOUT_SECONDS = 5.0


class KubernetesAccess:
    """ClusterAccess over a Rest. Secret and ConfigMap live in `namespace`.

    `known_pod` looks into the operator's own pod facts; a pod that it does not know is asked for.
    """

    def __init__(
        self, rest: Rest, namespace: str, known_pod: Callable[[ObjectKey], PodFact | None] | None = None
    ) -> None:
        self._rest = rest
        self._namespace = namespace
        self._known_pod = known_pod

    async def read_secret(self, name: str) -> StoredData | None:
        """See ClusterAccess."""
        stored = await self._read(SECRETS, name)
        if stored is None:
            return None
        data = {key: b64decode(text) for key, text in (stored.get("data") or {}).items()}
        return StoredData(data, stored["metadata"]["resourceVersion"])

    async def create_secret(self, name: str, data: Mapping[str, bytes]) -> bool:
        """See ClusterAccess."""
        encoded = {key: b64encode(value).decode() for key, value in data.items()}
        manifest = {"metadata": self._metadata(name), "type": "kubernetes.io/tls", "data": encoded}
        return await self._write(SECRETS, manifest)

    async def read_config_map(self, name: str) -> StoredData | None:
        """See ClusterAccess."""
        stored = await self._read(CONFIG_MAPS, name)
        if stored is None:
            return None
        data = {key: text.encode() for key, text in (stored.get("data") or {}).items()}
        return StoredData(data, stored["metadata"]["resourceVersion"])

    async def write_config_map(self, name: str, data: Mapping[str, bytes], at: StoredData | None) -> bool:
        """See ClusterAccess."""
        metadata = self._metadata(name)
        if at is not None:
            metadata["resourceVersion"] = at.resource_version
        texts = {key: value.decode() for key, value in data.items()}
        return await self._write(CONFIG_MAPS, {"metadata": metadata, "data": texts})

    async def review_token(self, token: str, audience: str) -> TokenVerdict:
        """See ClusterAccess."""
        manifest = {"metadata": {}, "spec": {"token": token, "audiences": [audience]}}
        try:
            answer = await writes.create(
                self._rest, TOKEN_REVIEWS, manifest, manager=managers.FLEET, timeout_seconds=_TIMEOUT_SECONDS
            )
        except ApiError as error:
            raise UnavailableError(str(error)) from error
        status: Mapping[str, Any] = answer.get("status") or {}
        user: Mapping[str, Any] = status.get("user") or {}
        return TokenVerdict(
            authenticated=bool(status.get("authenticated")),
            username=str(user.get("username", "")),
            audiences=tuple(status.get("audiences") or ()),
            extra={key: tuple(values) for key, values in (user.get("extra") or {}).items()},
            error=str(status.get("error", "")),
        )

    async def find_pod(self, key: ObjectKey, uid: str) -> PodPlace | None:
        """See ClusterAccess. A pod that is being deleted still exists."""
        known = self._known_pod(key) if self._known_pod is not None else None
        if known is not None and known.uid == uid and known.node and not known.deleting:
            return PodPlace(known.node)
        # Not seen yet, not seen scheduled, replaced, or about to go: only the API server knows.
        target = PODS.at(key.namespace, key.name)
        try:
            pod = await reads.find(self._rest, target, timeout_seconds=_TIMEOUT_SECONDS)
        except ApiError as error:
            raise UnavailableError(str(error)) from error
        if pod is None or pod["metadata"]["uid"] != uid:
            return None
        return PodPlace(str(pod["spec"].get("nodeName", "")))

    def _metadata(self, name: str) -> dict[str, Any]:
        return {"name": name, "namespace": self._namespace, "labels": {MANAGED_BY: MANAGER}}

    async def _read(self, resource: Resource, name: str) -> Obj | None:
        target = resource.at(self._namespace, name)
        try:
            return await reads.find(self._rest, target, timeout_seconds=_TIMEOUT_SECONDS)
        except ApiError as error:
            raise UnavailableError(str(error)) from error

    async def _write(self, resource: Resource, manifest: Mapping[str, Any]) -> bool:
        write = writes.replace if "resourceVersion" in manifest["metadata"] else writes.create
        try:
            await write(
                self._rest, resource, manifest, manager=managers.FLEET, timeout_seconds=_TIMEOUT_SECONDS
            )
        except (AlreadyExists, Conflict, Gone):
            return False
        except ApiError as error:
            raise UnavailableError(str(error)) from error
        return True
