"""Simulated hosts: an address, a Node object kept Ready, and Pods whose containers are plain processes.

A host does for its Pods what a kubelet does, as far as anyone looks at it: a Pod bound to the host
becomes Running and Ready with the host's address, `runner` may start a process for it, and a deleted
Pod gets SIGTERM, its grace period, SIGKILL, and then goes.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from devcluster import sandbox
from devcluster.controlplane import ControlPlane
from devcluster.process import ManagedProcess
from devcluster.rest import ApiError, JsonObject

LEASES = "kube-node-lease"
LEASE_SECONDS = 40
TEND_SECONDS = 0.25
RENEW_SECONDS = 2.0
COMMAND_SECONDS = 10
JOIN_SECONDS = 15
HOSTNAME_LABEL = "kubernetes.io/hostname"


def host_address(index: int, network: int = 0) -> str:
    """10.77.<network>.<10 + index> in a sandbox; outside, where it cannot be added, a loopback address."""
    first = "10.77" if sandbox.inside() else "127.77"
    return f"{first}.{network}.{10 + index}"


class HostOptions(TypedDict, total=False):
    """What SimulatedHost takes besides what it is and where it lies."""

    labels: Mapping[str, str]
    runner: Callable[[SimulatedHost, JsonObject], ManagedProcess | None]
    allocatable: Mapping[str, str]


class SimulatedHost:
    """One host of a simulated cluster.

    `runner(host, pod)` is called once for each Pod that arrives and returns the process that stands
    for it (started, usually by `host.start`), or None for a Pod of which only the object matters.
    Processes started by `start` belong to the host and end with it.
    """

    def __init__(
        self,
        plane: ControlPlane,
        name: str,
        address: str,
        folder: Path,
        labels: Mapping[str, str] | None = None,
        runner: Callable[[SimulatedHost, JsonObject], ManagedProcess | None] | None = None,
        allocatable: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.address = address
        self.folder = folder
        self.labels = {HOSTNAME_LABEL: name, **(labels or {})}
        self.api = plane.as_user(f"system:node:{name}", ["system:masters", "system:nodes"])
        self.boot_id = ""
        self.processes: list[ManagedProcess] = []
        self._runner = runner
        self._allocatable = {"cpu": "8", "memory": "64Gi", "pods": "110", **(allocatable or {})}
        self._by_pod: dict[str, ManagedProcess | None] = {}
        self._lock = threading.RLock()  # a loop and the test may both admit a Pod
        self._off = threading.Event()
        self._threads: list[threading.Thread] = []

    # Power

    def bring_up(self) -> SimulatedHost:
        """Boot: new boot id, address, Node Ready, Pods tended. Raises ApiError."""
        self.boot_id = str(uuid.uuid4())
        _change_address("replace", self.address)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": self.labels}}
        self.api.apply(node, field_manager="kubelet")
        self.api.patch("v1", "Node", self.name, {"status": self._node_status()}, subresource="status")
        self._renew()
        self._off.clear()
        # Two loops: a Pod that drains slowly must not make its host look dead.
        for period_seconds, work in ((TEND_SECONDS, self._tend_pods), (RENEW_SECONDS, self._renew)):
            thread = threading.Thread(target=self._loop, args=(period_seconds, work), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def take_away(self) -> None:
        """Power cut: the address goes first, so that nobody hears a goodbye, then every process.

        Node and Pod objects stay as they were, as they do in a cluster.
        """
        self._off.set()
        _change_address("delete", self.address)
        self._kill_all()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        self._threads.clear()
        self._kill_all()  # what a loop started meanwhile
        with self._lock:
            self.processes.clear()
            self._by_pod.clear()

    def _kill_all(self) -> None:
        for process in list(self.processes):
            process.kill()

    def remove(self) -> None:
        """Take the host away and delete its Node, Lease and Pods. Raises ApiError."""
        self.take_away()
        for pod in self.pods():
            self._finish(pod)
        self.api.delete("coordination.k8s.io/v1", "Lease", self.name, LEASES)
        self.api.delete("v1", "Node", self.name)

    # Processes and Pods

    def start(
        self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> ManagedProcess:
        """Start a process that ends with this host; its log is `<folder>/<name>.log`."""
        process = ManagedProcess(name, argv, self.folder / f"{name}.log", env).start()
        with self._lock:
            self.processes.append(process)
        return process

    def add_pod(self, pod: JsonObject) -> JsonObject:
        """Create a Pod on this host and return it Running and Ready. Raises ApiError."""
        bound = {**pod, "spec": {**pod["spec"], "nodeName": self.name}}
        created = self.api.create(bound)
        self._admit(created)
        return self.api.get("v1", "Pod", created["metadata"]["name"], created["metadata"]["namespace"])

    def process_of(self, pod: JsonObject) -> ManagedProcess | None:
        """The process that stands for a Pod of this host, if it has one."""
        with self._lock:
            return self._by_pod.get(pod["metadata"]["uid"])

    def pods(self) -> list[JsonObject]:
        """The Pods bound to this host. Raises ApiError."""
        return self.api.list("v1", "Pod", field_selector=f"spec.nodeName={self.name}")

    # What a kubelet does

    def _loop(self, period_seconds: float, work: Callable[[], None]) -> None:
        while not self._off.wait(period_seconds):
            try:
                work()
            except (ApiError, OSError):
                continue  # an outage or a conflict: the next round sees what became of it
        self.api.close()

    def _tend_pods(self) -> None:
        for pod in self.pods():
            self._tend_pod(pod)

    def _tend_pod(self, pod: JsonObject) -> None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            if self._off.is_set():
                return
            if "deletionTimestamp" in pod["metadata"]:
                self._end_process(uid, pod["metadata"].get("deletionGracePeriodSeconds", 0))
                self._finish(pod)
            elif uid not in self._by_pod:
                self._admit(pod)
            else:
                process = self._by_pod[uid]
                is_ready = process is None or process.running
                if is_ready != _says_ready(pod):
                    self._write_status(pod, is_ready)

    def _admit(self, pod: JsonObject) -> None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            if uid not in self._by_pod:
                self._by_pod[uid] = self._runner(self, pod) if self._runner else None
                self._write_status(pod, is_ready=True)

    def _end_process(self, uid: str, grace_seconds: float) -> None:
        process = self._by_pod.pop(uid, None)
        if process is not None:
            process.terminate(grace_seconds)
            if process in self.processes:
                self.processes.remove(process)

    def _finish(self, pod: JsonObject) -> None:
        meta = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        self.api.delete("v1", "Pod", meta["name"], meta["namespace"], options)

    def _write_status(self, pod: JsonObject, is_ready: bool) -> None:
        meta = pod["metadata"]
        status = self._pod_status(pod, is_ready)
        self.api.patch("v1", "Pod", meta["name"], {"status": status}, meta["namespace"], "status")

    def _pod_status(self, pod: JsonObject, is_ready: bool) -> JsonObject:
        now = _now()
        state = {"running": {"startedAt": now}} if is_ready else {"terminated": {"exitCode": 1}}
        ready = "True" if is_ready else "False"
        return {
            "phase": "Running",
            "hostIP": self.address,
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "startTime": pod.get("status", {}).get("startTime", now),
            "conditions": [
                {"type": "PodScheduled", "status": "True"},
                {"type": "Initialized", "status": "True"},
                {"type": "ContainersReady", "status": ready, "lastTransitionTime": now},
                {"type": "Ready", "status": ready, "lastTransitionTime": now},
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": container["image"],
                    "ready": is_ready,
                    "started": is_ready,
                    "restartCount": 0,
                    "state": state,
                }
                for container in pod["spec"]["containers"]
            ],
        }

    def _node_status(self) -> JsonObject:
        now = _now()
        healthy = {"lastHeartbeatTime": now, "lastTransitionTime": now, "message": "", "reason": "Simulated"}
        return {
            "capacity": self._allocatable,
            "allocatable": self._allocatable,
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "nodeInfo": {"bootID": self.boot_id, "machineID": self.name, "kubeletVersion": "simulated"},
            "conditions": [
                {"type": "Ready", "status": "True", **healthy},
                {"type": "MemoryPressure", "status": "False", **healthy},
                {"type": "DiskPressure", "status": "False", **healthy},
                {"type": "PIDPressure", "status": "False", **healthy},
            ],
        }

    def _renew(self) -> None:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.name, "namespace": LEASES},
            "spec": {
                "holderIdentity": self.name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            },
        }
        self.api.apply(lease, field_manager="kubelet")


def _says_ready(pod: JsonObject) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _change_address(verb: str, address: str) -> None:
    """Add (`replace`) or `delete` an address; outside a sandbox all loopback addresses are there anyway."""
    if not sandbox.inside():
        return
    subprocess.run(
        ["ip", "address", verb, f"{address}/32", "dev", sandbox.HOSTS_DEVICE],
        check=verb == "replace",  # deleting one that is gone already is fine
        capture_output=True,
        timeout=COMMAND_SECONDS,
    )


def _now() -> str:
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
