"""Server-side apply: one field manager per concern, forced, and not sent when nothing would change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import orjson

from kvpool.cluster.resources import Obj, Resource
from kvpool.cluster.rest import DEFAULT_TIMEOUT_SECONDS, Rest, Verb

_REMEMBERED_APPLIES = 65_536
"""How many objects a manager remembers its last apply of; a forgotten one costs one superfluous apply."""

_Key: TypeAlias = tuple[Resource, str | None, str, str | None]


class Applied(NamedTuple):
    """What an apply came to: the object as it now is, and whether a request was sent."""

    obj: Obj
    sent: bool


class _Remembered(NamedTuple):
    uid: str
    digest: bytes


class Applier:
    """Writes the fields of one concern under its own field manager.

    Every apply names all fields the concern owns: a field left out is removed by the server. An apply is
    skipped when the same manifest was applied to the same object (UID) before and the object, as the caller
    last saw it, still carries every field of it. A new process knows of no earlier apply, so its first one
    per object is always sent; the server then changes nothing and leaves the resourceVersion alone.
    """

    def __init__(self, rest: Rest, manager: str) -> None:
        self._rest = rest
        self._manager = manager
        self._applied: OrderedDict[_Key, _Remembered] = OrderedDict()

    async def apply(
        self,
        resource: Resource,
        manifest: Mapping[str, Any],
        *,
        current: Mapping[str, Any] | None = None,
        sub: str | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> Applied:
        """Apply `manifest` (metadata.name, metadata.namespace, the owned fields) to the object or to `sub`.

        `apiVersion` and `kind` are filled in. `current` is the object as the cache has it, with at least
        metadata.uid and the fields of the manifest; without it nothing is ever skipped. A
        metadata.resourceVersion in the manifest makes the write conditional, a metadata.uid binds it to one
        incarnation. Without `sub`, a missing object is created.
        Raises ApiError: Conflict for a stale condition, Gone for a subresource of a missing object,
        Terminal for fields that the schema refuses.
        """
        target = resource.of(manifest, sub)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}
        content = _without_condition(body)
        digest = _digest(content)
        key = (resource, target.namespace, str(target.name), sub)
        if current is not None and self._is_applied(key, digest, current) and carries(current, content):
            return Applied(dict(current), sent=False)
        answer = await self._rest.request(
            Verb.APPLY,
            target,
            query={"fieldManager": self._manager, "force": "true", "fieldValidation": "Strict"},
            body=body,
            timeout_seconds=timeout_seconds,
        )
        self._remember(key, _Remembered(answer["metadata"]["uid"], digest))
        return Applied(answer, sent=True)

    async def apply_status(
        self,
        resource: Resource,
        manifest: Mapping[str, Any],
        *,
        current: Mapping[str, Any] | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> Applied:
        """`apply` to the status subresource: `manifest` holds metadata and status, spec stays as it is."""
        return await self.apply(
            resource, manifest, current=current, sub="status", timeout_seconds=timeout_seconds
        )

    def _is_applied(self, key: _Key, digest: bytes, current: Mapping[str, Any]) -> bool:
        remembered = self._applied.get(key)
        return remembered == _Remembered(current["metadata"].get("uid", ""), digest)

    def _remember(self, key: _Key, remembered: _Remembered) -> None:
        self._applied[key] = remembered
        self._applied.move_to_end(key)
        if len(self._applied) > _REMEMBERED_APPLIES:
            self._applied.popitem(last=False)


def carries(current: object, wanted: object) -> bool:
    """Whether `current` already holds everything in `wanted`; it may hold more fields in its mappings.

    Lists must agree in length and order, because without the schema their keys are not known: the answer
    may be a needless False, never a wrong True.
    """
    if isinstance(wanted, Mapping):
        return isinstance(current, Mapping) and all(
            name in current and carries(current[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(current, list | tuple)
            and len(current) == len(wanted)
            and all(map(carries, current, wanted))
        )
    # True == 1 in Python, not in an API object.
    return type(current) is type(wanted) and current == wanted


def _without_condition(body: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without metadata.resourceVersion, which says when to write and not what."""
    metadata = {name: value for name, value in body["metadata"].items() if name != "resourceVersion"}
    return {**body, "metadata": metadata}


def _digest(body: Mapping[str, Any]) -> bytes:
    return blake2b(orjson.dumps(body, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()
