"""An engine may only speak for the pod that its process runs in."""

from __future__ import annotations

import os
from pathlib import Path

import grpc
import pytest

from kvpool.wire.v1alpha1 import local_pb2, local_pb2_grpc
from kvpool_agent.front_door import FrontDoor
from kvpool_agent.local_api import LocalApi
from kvpool_agent.pod_of_process import pod_mismatch, pod_uid_in
from kvpool_agent.seats import SeatBook

UID = "6f1c2f0e-8a55-4f0b-9a3e-0a1b2c3d4e5f"
OTHER = "00000000-8a55-4f0b-9a3e-0a1b2c3d4e5f"
SYSTEMD = UID.replace("-", "_")


@pytest.mark.parametrize(
    ("cgroup", "uid"),
    [
        (f"0::/kubepods.slice/kubepods-pod{SYSTEMD}.slice/cri-containerd-0a1b.scope\n", UID),
        (f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SYSTEMD}.slice/c.scope", UID),
        (f"0::/kubepods/burstable/pod{UID}/0a1b2c\n", UID),
        (f"0::/../../kubepods-burstable-pod{SYSTEMD}.slice/crio-0a1b.scope", UID),
        (f"0::/../../pod{UID}/0a1b2c", UID),
        (f"12:pids:/kubepods/pod{UID}/0a1b\n1:name=systemd:/kubepods/pod{UID}/0a1b\n0::/\n", UID),
        (f"0::/kubepods/pod{OTHER}/0a1b/kubelet/kubepods/burstable/pod{UID}/0a1b", UID),
        ("0::/kubepods/burstable/pod0123456789abcdef0123456789abcdef/0a", "0123456789abcdef0123456789abcdef"),
        ("0::/user.slice/user-0.slice/session-1.scope\n", ""),
        ("0::/system.slice/podman.service\n", ""),
        ("9:name=systemd:/\n0::/\n", ""),
        ("0::/machine.slice/libpod-0a1b.scope", ""),
        ("nonsense", ""),
        ("", ""),
    ],
)
def test_the_cgroup_of_a_process_names_its_pod(cgroup: str, uid: str) -> None:
    assert pod_uid_in(cgroup) == uid


def proc(folder: Path, **cgroups: str) -> Path:
    for name, cgroup in cgroups.items():
        (folder / name.removeprefix("pid")).mkdir(parents=True)
        (folder / name.removeprefix("pid") / "cgroup").write_text(cgroup)
    return folder


@pytest.mark.parametrize(
    ("theirs", "agents", "accepted"),
    [
        (f"0::/kubepods/pod{UID}/a", "0::/", True),
        (f"0::/kubepods/pod{OTHER}/a", "0::/", False),
        (f"0::/kubepods/pod{OTHER}/a", f"0::/kubepods/pod{UID}/a", False),
        (f"0::/kubepods/pod{OTHER}/a", f"0::/kubepods/pod{OTHER}/b", True),
        ("0::/user.slice", "0::/user.slice", True),
    ],
    ids=["its own", "another", "another, seen from a pod", "the agent's own pod", "no pod"],
)
def test_only_a_process_that_is_seen_in_another_pod_is_refused(
    tmp_path: Path, theirs: str, agents: str, accepted: bool
) -> None:
    said = pod_mismatch(100, UID, proc(tmp_path / "proc", pid100=theirs, self=agents))
    assert (said == "") == accepted
    assert accepted or (UID in said and OTHER in said)


def test_a_process_that_cannot_be_seen_may_claim_any_pod(tmp_path: Path) -> None:
    assert pod_mismatch(0, UID, proc(tmp_path / "proc", self="0::/")) == ""


async def test_an_engine_that_claims_another_pod_is_refused_and_counted(tmp_path: Path) -> None:
    seen = proc(tmp_path / "proc", self="0::/", **{f"pid{os.getpid()}": f"0::/kubepods/pod{OTHER}/a"})
    public = tmp_path / "local.sock"
    local = LocalApi(SeatBook(), FrontDoor(public, 4), tmp_path / "seats.json", seen)
    await local.start()
    try:
        async with grpc.aio.insecure_channel(f"unix:{public}") as channel:
            call = local_pb2_grpc.LocalServiceStub(channel).Attach(timeout=10)
            await call.write(local_pb2.AttachRequest(register=local_pb2.Register(pod_uid=UID)))
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call.read()
    finally:
        await local.stop()
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert OTHER in str(refused.value.details())
    assert local.refused_messages == 1
    assert local.book.engines == {}
