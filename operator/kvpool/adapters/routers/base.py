"""What every router output can do: render the objects it wants, and say which revision is in force."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kvpool.api.pdgroup import Output
from kvpool.model.decisions import SlotWeight
from kvpool.model.ids import ObjectKey

Manifest = Mapping[str, Any]

ASSUMED_AFTER_SECONDS = 5.0
"""Propagation floor: an output that cannot be read back is assumed in force so long after the write."""


@dataclass(frozen=True, slots=True)
class Revision:
    """All weights of one output at one time."""

    group: ObjectKey
    group_uid: str
    frozen_on_delete: bool
    """Whether the output's objects stay as they are when the group is deleted."""
    output: Output
    number: int
    members: tuple[SlotWeight, ...]
    port: int


@dataclass(frozen=True, slots=True)
class Desired:
    """One object that an output wants, for server-side apply."""

    kind: str
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Rendered:
    """The objects of one revision, in the order they are to be applied."""

    objects: tuple[Desired, ...]
    pod_labels: Mapping[str, Mapping[str, str | None]]
    """Pod UID to labels; None removes one. Only for outputs that write on pods."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What could be read back just now."""

    in_force: bool
    detail: str


class RouterOutput(Protocol):
    """One type of output."""

    carries_weights: bool
    """False: it knows only in and out, so a weight between 0 and full is not expressible."""

    def render(self, revision: Revision) -> Rendered:
        """Return the objects that carry `revision`. Pure."""
        ...

    async def read_back(self, revision: Revision) -> Reading | None:
        """Tell whether `revision` is in force; None when this output can only be assumed."""
        ...


def metadata_of(revision: Revision, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """The metadata of one of an output's objects: it goes with its group, unless that says FreezeLast."""
    metadata: dict[str, Any] = {"name": name, "namespace": revision.group.namespace, "labels": dict(labels)}
    if not revision.frozen_on_delete:
        owner = {
            "apiVersion": "kvpool.dev/v1alpha1",
            "kind": "PDGroup",
            "name": revision.group.name,
            "uid": revision.group_uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }
        metadata["ownerReferences"] = [owner]
    return metadata
