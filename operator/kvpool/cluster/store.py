"""The fact store: the newest known state of watched objects, which late news cannot set back.

Three sources feed it: watches, lists and the answers to our own writes. They overtake each other, so every
fact remembers UID and resourceVersion, and of a UID that went only news after its going are believed (an
object may come back when it only had left a selection). The store knows no time; how fresh it is, the
sources know.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar, cast

from kvpool.cluster.resources import Obj, Resource

T = TypeVar("T")

_REMEMBERED_DELETIONS = 16_384
"""News of a deleted object arrive seconds late at most; this many deletions take far longer."""


class EventType(StrEnum):
    """What a watch says about an object; values as on the wire."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Key(NamedTuple):
    """The address of an object in the store; `namespace` is None for cluster-scoped kinds."""

    resource: Resource
    namespace: str | None
    name: str


class Identity(NamedTuple):
    """An object found by a list: where it is and which incarnation."""

    namespace: str | None
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Fact(Generic[T]):
    """What the store knows of one object.

    `value` is the projection registered for its resource, `raw` the object without managedFields where the
    registration keeps it, else None.
    """

    key: Key
    uid: str
    resource_version: str
    value: T
    raw: Obj | None


Subscriber = Callable[[Key], None]


@dataclass(frozen=True, slots=True)
class Registration(Generic[T]):
    """How the store keeps one resource; returned by `register`, and the handle for typed reads."""

    resource: Resource
    project: Callable[[Obj], T]
    keep_raw: bool


class FactStore:
    """Facts by resource, namespace and name. For use in one event loop; no method waits."""

    def __init__(self) -> None:
        self._registrations: dict[Resource, Registration[Any]] = {}
        self._facts: dict[Resource, dict[tuple[str | None, str], Fact[Any]]] = {}
        self._gone: OrderedDict[str, str] = OrderedDict()  # UID: resourceVersion at which it went
        self._subscribers: list[Subscriber] = []

    def register(
        self, resource: Resource, project: Callable[[Obj], T], *, keep_raw: bool = False
    ) -> Registration[T]:
        """Keep `resource` from now on, as `project(obj)` and, with `keep_raw`, as the object itself.

        `project` must be pure and total: what it raises goes to whoever fed the store. Keep raw objects of
        kinds we apply, so that an apply that changes nothing can be skipped. Raises ValueError when the
        resource is registered already.
        """
        if resource in self._registrations:
            raise ValueError(f"{resource} is registered already")
        registration = Registration(resource, project, keep_raw)
        self._registrations[resource] = registration
        self._facts[resource] = {}
        return registration

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with the key of every fact that changes or goes; returns what ends that.

        Subscribers run inside the feeding call: they enqueue a key and return.
        """
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def observe(self, resource: Resource, event: EventType, obj: Obj) -> bool:
        """Take in news from a watch; True when it changed what is known, False when it was old or no news.

        Raises KeyError for a resource that is not registered.
        """
        if event is EventType.DELETED:
            return self._remove(resource, obj)
        return self._keep(resource, obj)

    def absorb(self, resource: Resource, answer: Obj) -> bool:
        """Take in the server's answer to a write of ours; like `observe`, in any order with the watch."""
        metadata = answer["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers") and _has_no_grace(metadata):
            # The answer to removing the last finalizer: the object is gone with it.
            return self._remove(resource, answer)
        return self._keep(resource, answer)

    def prune(
        self,
        resource: Resource,
        listed: Collection[Identity],
        resource_version: str,
        namespace: str | None,
        name: str | None = None,
    ) -> int:
        """Drop what a complete list does not show; returns how many facts went.

        A re-list after an outage brings no deletions, so absence from it is the only news of them. Facts
        newer than the list (our own writes since) stay. `namespace` and `name` are the list's scope, None for
        all: a list of one object says nothing of others.
        """
        present = {(identity.namespace, identity.name): identity.uid for identity in listed}
        gone = [
            fact
            for (at, called), fact in self._facts[resource].items()
            if (namespace is None or at == namespace)
            and (name is None or called == name)
            and present.get((at, called)) != fact.uid
            and not _is_newer(fact.resource_version, resource_version)
        ]
        for fact in gone:
            self._drop(fact, resource_version)
        return len(gone)

    def get(self, registration: Registration[T], name: str, namespace: str | None = None) -> Fact[T] | None:
        """The fact of one object, or None when the store knows of none."""
        return self._facts[registration.resource].get((namespace, name))

    def facts(self, registration: Registration[T]) -> Iterator[Fact[T]]:
        """All facts of a resource; the store must not be fed while iterating."""
        return iter(self._facts[registration.resource].values())

    def count(self, resource: Resource) -> int:
        """How many objects of the resource are known."""
        return len(self._facts[resource])

    def _keep(self, resource: Resource, obj: Obj) -> bool:
        registration = self._registrations[resource]
        metadata = obj["metadata"]
        key = Key(resource, metadata.get("namespace"), metadata["name"])
        uid, version = metadata["uid"], metadata["resourceVersion"]
        known = self._facts[resource].get((key.namespace, key.name))
        last = known.resource_version if known is not None else self._gone.get(uid)
        if last is not None and not _is_newer(version, last):
            return False
        if known is not None and known.uid != uid:
            # Late news of the former incarnation must not touch this one.
            self._remember_gone(known.uid, version)
        raw = without_managed_fields(obj) if registration.keep_raw else None
        self._facts[resource][(key.namespace, key.name)] = Fact(
            key, uid, version, registration.project(obj), raw
        )
        self._tell(key)
        return True

    def _remove(self, resource: Resource, obj: Obj) -> bool:
        metadata = obj["metadata"]
        uid, version = metadata["uid"], metadata["resourceVersion"]
        known = self._facts[resource].get((metadata.get("namespace"), metadata["name"]))
        if known is None or known.uid != uid:
            self._remember_gone(uid, version)
            return False
        self._drop(known, version)
        return True

    def _drop(self, fact: Fact[Any], version: str) -> None:
        del self._facts[fact.key.resource][(fact.key.namespace, fact.key.name)]
        self._remember_gone(fact.uid, version)
        self._tell(fact.key)

    def _remember_gone(self, uid: str, version: str) -> None:
        self._gone[uid] = version
        if len(self._gone) > _REMEMBERED_DELETIONS:
            self._gone.popitem(last=False)

    def _tell(self, key: Key) -> None:
        for subscriber in self._subscribers:
            subscriber(key)


def without_managed_fields(obj: Obj) -> Obj:
    """The object without metadata.managedFields, often half of its size and of no use to us."""
    metadata = cast("Mapping[str, Any]", obj["metadata"])
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _has_no_grace(metadata: Mapping[str, Any]) -> bool:
    return not metadata.get("deletionGracePeriodSeconds")


def _is_newer(version: str, known: str) -> bool:
    """Whether one resourceVersion comes after another.

    Decimal ones are compared as numbers, as the API's conventions have it since Kubernetes 1.35; others
    carry no order, so that any difference counts as newer.
    """
    if _is_decimal(version) and _is_decimal(known):
        return int(version) > int(known)
    return version != known


def _is_decimal(version: str) -> bool:
    return version.isascii() and version.isdigit()
