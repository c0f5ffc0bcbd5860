"""Keepers by name: which pod holds which generation of which unit, and what it costs."""

import re
from hashlib import blake2s
from typing import Final

from kvpool.api import labels
from kvpool.api.kvnode import UnitSpec
from kvpool.api.tierbudget import Backend
from kvpool.model.observations import PodFact

KEEPER_OVERHEAD_BYTES: Final = 192 << 20
"""What a keeper's process needs beside its unit: 150 MB measured, and a margin."""

ENDED: Final = frozenset({"Succeeded", "Failed"})
"""Phases of pods that hold nothing any more."""

_NAME_MAX: Final = 63
"""A pod's name is its host name too."""

_GENERATION: Final = re.compile(r"-g(\d+)$")
_UNFIT: Final = re.compile(r"[^a-z0-9]+")


def keeper_bytes(backend: Backend, size_bytes: int) -> int:
    """Memory that a keeper's pod requests: pages of a tmpfs unit are charged to it, a file's are not."""
    return KEEPER_OVERHEAD_BYTES + (size_bytes if backend is Backend.TMPFS else 0)


def keeper_name(unit: UnitSpec, node: str, generation: int | None = None) -> str:
    """Name the pod that keeps a generation (default: the decided one) of a unit on a node.

    Readable as far as 63 characters allow: pool, tier, NUMA node and host, a digest of unit and host that
    makes it unique, and the generation.
    """
    tail = f"-{_digest(unit, node)}-g{unit.generation if generation is None else generation}"
    pool = unit.pool.partition("/")[2]
    numa = "" if unit.numa_node < 0 else f"-n{unit.numa_node}"
    words = _UNFIT.sub("-", f"{pool}-{unit.tier.lower()}{numa}-{node}".lower())
    return f"{words[: _NAME_MAX - len(tail)].rstrip('-')}{tail}"


def is_keeper(pod: PodFact) -> bool:
    """Tell whether a pod is one of our keepers."""
    ours = pod.labels.get(labels.MANAGED_BY) == labels.MANAGER
    return ours and pod.labels.get(labels.COMPONENT) == "keeper"


def keeper_node(pod: PodFact) -> str:
    """Return the node that a keeper is for, also before it is scheduled."""
    return pod.labels.get(labels.NODE, pod.node)


def generation_kept(pod: PodFact) -> int:
    """Return the unit generation that a keeper's name carries; 0 when it carries none."""
    found = _GENERATION.search(pod.key.name)
    return int(found[1]) if found else 0


def keeps(pod: PodFact, unit: UnitSpec, node: str) -> bool:
    """Tell whether a keeper holds some generation of this unit on this node."""
    return pod.key.name == keeper_name(unit, node, generation_kept(pod))


def _digest(unit: UnitSpec, node: str) -> str:
    return blake2s(f"{unit.name}@{node}".encode(), digest_size=4).hexdigest()
