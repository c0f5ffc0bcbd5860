"""The keeper's pod, as the real API server takes it."""

from __future__ import annotations

import dataclasses

from kvpool.api.kvnode import UnitSpec
from kvpool.cluster.resources import PODS
from kvpool.cluster.rest import Rest
from kvpool.cluster.writes import create
from kvpool.control.keeper_pod import KeeperTemplate, keeper_manifest
from kvpool.model.decisions import KeeperSpec
from kvpool.model.ids import ObjectKey

SIZE_BYTES = 1 << 30
OVERHEAD_BYTES = 64 << 20


def a_keeper(backend: str, path: str = "") -> KeeperSpec:
    unit = UnitSpec.parse(
        {
            "name": "inference.chat.dram.n0",
            "pool": "inference/chat",
            "tier": "DRAM",
            "sizeBytes": SIZE_BYTES,
            "backend": backend,
            "path": path,
            "generation": 3,
        }
    )
    pool = ObjectKey("inference", "chat")
    return KeeperSpec("chat-dram-n0-g3", "node-1", pool, "uid-chat", unit, SIZE_BYTES + OVERHEAD_BYTES)


def a_template(namespace: str, shared_memory_folder: str = "") -> KeeperTemplate:
    return KeeperTemplate("keeper:1", namespace, "default", "/host/units", 65532, shared_memory_folder)


async def test_the_server_takes_it_and_counts_its_memory_as_taken(rest: Rest, namespace: str) -> None:
    manifest = keeper_manifest(a_keeper("tmpfs"), a_template(namespace))
    pod = await create(rest, PODS, manifest, manager="test")
    assert pod["status"]["qosClass"] == "Guaranteed"
    (container,) = pod["spec"]["containers"]
    # The server writes quantities as it was given them.
    assert container["resources"]["requests"]["memory"] == str(SIZE_BYTES + OVERHEAD_BYTES)
    assert "nodeName" not in pod["spec"], "the scheduler is to check that it fits"
    assert any("inference.chat.dram.n0-g3" in argument for argument in container["args"])


def test_a_unit_in_a_file_has_its_folder_under_the_same_path_as_the_agent() -> None:
    spec = keeper_manifest(a_keeper("file", "/mnt/nvme0"), a_template("kvpool", "/dev/shm/kvpool"))["spec"]
    (container,) = spec["containers"]
    assert "/mnt/nvme0" in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert "/mnt/nvme0" in [volume["hostPath"]["path"] for volume in spec["volumes"]]
    assert "/dev/shm/kvpool" not in [mount["mountPath"] for mount in container["volumeMounts"]]


def test_a_keeper_has_the_priority_class_that_the_chart_says_or_the_clusters_default() -> None:
    template = a_template("kvpool")
    assert "priorityClassName" not in keeper_manifest(a_keeper("tmpfs"), template)["spec"]
    urgent = dataclasses.replace(template, priority_class="high")
    assert keeper_manifest(a_keeper("tmpfs"), urgent)["spec"]["priorityClassName"] == "high"
