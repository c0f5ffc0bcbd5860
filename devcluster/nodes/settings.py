"""What a cluster of real nodes is made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """All have defaults that suit tests.

    `images` are archives that every node has from its first start; one of them holds `pause`, the image that
    keeps a pod's namespaces. `labels` are what a node says of itself when it registers, by node name.
    A silent node is NotReady after `node_grace_seconds` (None: 40, with kubelet's own slow reports), and
    its pods are evicted `eviction_seconds` later. `allocatable_bytes` is the memory a node has for pods, and
    the limit that the kernel holds all of them to; `shared_memory_bytes` is the size of its /dev/shm.
    `kubelet` is further KubeletConfiguration, by field.
    """

    images: Sequence[Path] = ()
    pause: str = "localhost/pause:dev"
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    node_grace_seconds: int | None = 8
    eviction_seconds: int = 300
    allocatable_bytes: int = 4 * GIB
    shared_memory_bytes: int = 2 * GIB
    kubelet: Mapping[str, object] = field(default_factory=dict)
