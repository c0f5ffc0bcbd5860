"""Simulated hosts: an address, a Node object kept Ready, and Pods whose containers are plain processes.

A host does for its Pods what a kubelet does, as far as anyone looks at it: a Pod bound to the host
becomes Running and Ready with the host's address, `runner` may start a process for it, which is started
again when it ends, and a deleted Pod gets SIGTERM, its grace period, SIGKILL, and then goes.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from devcluster import sandbox
from devcluster.controlplane import ControlPlane
from devcluster.hostfiles import HostFiles
from devcluster.podlife import PodLife
from devcluster.podstatus import pod_status, says_ready, timestamp
from devcluster.process import ManagedProcess, ProcessError
from devcluster.rest import ApiError, JsonObject

LEASES = "kube-node-lease"
LEASE_SECONDS = 40
TEND_SECONDS = 0.25
RENEW_SECONDS = 2.0
REFRESH_SECONDS = 1.0
COMMAND_SECONDS = 10
JOIN_SECONDS = 15
HOSTNAME_LABEL = "kubernetes.io/hostname"
SYSTEM_LABEL = "kubernetes.io/os"


def host_address(index: int, network: int = 0) -> str:
    """10.77.<network>.<10 + index> in a sandbox; outside, where it cannot be added, a loopback address."""
    first = "10.77" if sandbox.inside() else "127.77"
    return f"{first}.{network}.{10 + index}"


class HostOptions(TypedDict, total=False):
    """What SimulatedHost takes besides what it is and where it lies."""

    labels: Mapping[str, str]
    runner: Callable[[SimulatedHost, JsonObject], ManagedProcess | None]
    refresh: Callable[[SimulatedHost, JsonObject], None]
    allocatable: Mapping[str, str]
    own_mounts: bool
    pod_addresses: Sequence[str]
    logs: Path


class SimulatedHost:
    """One host of a simulated cluster.

    `runner(host, pod)` is called for each Pod that arrives and returns the process that stands for it
    (started, usually by `host.start`), or None for a Pod of which only the object matters; what it raises
    the Pod's status shows, and it is called again. `refresh(host, pod)` is called about every second for
    Pods that run. Processes started by `start` belong to the host and end with it; their logs go to `logs`,
    else to `folder`. `own_mounts` gives them a /mnt of the host (HostFiles). Pods have the host's address;
    with `pod_addresses`, those outside the host's network have one of these each, while there are any left.
    """

    def __init__(
        self,
        plane: ControlPlane,
        name: str,
        address: str,
        folder: Path,
        **options: Unpack[HostOptions],
    ) -> None:
        self.name = name
        self.address = address
        self.folder = folder
        self.logs = options.get("logs", folder)
        self.files = HostFiles(folder, own_mounts=options.get("own_mounts", False))
        self.labels = {HOSTNAME_LABEL: name, SYSTEM_LABEL: "linux", **options.get("labels", {})}
        self.api = plane.as_user(f"system:node:{name}", ["system:masters", "system:nodes"])
        self.boot_id = ""
        self.processes: list[ManagedProcess] = []
        self._runner = options.get("runner", _only_the_object)
        self._refresh = options.get("refresh", _nothing_to_do)
        self._allocatable = {
            "cpu": "8",
            "memory": "64Gi",
            "pods": "110",
            **options.get("allocatable", {}),
        }
        self._free_addresses = list(options.get("pod_addresses", ()))
        self._lives: dict[str, PodLife] = {}
        self._lock = threading.RLock()  # a loop and the test may both admit a Pod
        self._off = threading.Event()
        self._threads: list[threading.Thread] = []

    # Power

    def bring_up(self) -> SimulatedHost:
        """Boot: new boot id, address, Node Ready, Pods tended. Raises ApiError or ProcessError."""
        self.boot_id = str(uuid.uuid4())
        self.files.open(self.boot_id)
        _change_address("replace", self.address)
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": self.labels}}
        self.api.apply(node, field_manager="kubelet")
        self._say_ready()
        self._renew()
        self._off.clear()
        # Loops of their own: a Pod that drains slowly must not make its host look dead.
        for period_seconds, work in (
            (TEND_SECONDS, self._tend_pods),
            (RENEW_SECONDS, self._stay_ready),
            (REFRESH_SECONDS, self._refresh_pods),
        ):
            thread = threading.Thread(target=self._loop, args=(period_seconds, work), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def take_away(self) -> None:
        """Power cut: the address goes first, so that nobody hears a goodbye, then every process.

        Node and Pod objects stay as they were, as they do in a cluster.
        """
        self._off.set()
        with self._lock:
            for address in (self.address, *(life.address for life in self._lives.values())):
                _change_address("delete", address)
        self._kill_all()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        self._threads.clear()
        self._kill_all()  # what a loop started meanwhile
        self.files.close()
        with self._lock:
            self.processes.clear()
            for life in self._lives.values():
                self._give_back(life)
            self._lives.clear()

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
        """Start a process that ends with this host; its log is `<logs>/<name>.log`."""
        process = ManagedProcess(name, self.files.command(argv), self.logs / f"{name}.log", env).start()
        with self._lock:
            self.processes.append(process)
        return process

    def add_pod(self, pod: JsonObject) -> JsonObject:
        """Create a Pod on this host and return it Running and Ready. Raises ApiError."""
        bound = {**pod, "spec": {**pod["spec"], "nodeName": self.name}}
        created = self.api.create(bound)
        self._tend_pod(created)
        return self.api.get("v1", "Pod", created["metadata"]["name"], created["metadata"]["namespace"])

    def address_of(self, pod: JsonObject) -> str:
        """The address of a Pod of this host."""
        with self._lock:
            life = self._lives.get(pod["metadata"]["uid"])
            return life.address if life is not None else self.address

    def process_of(self, pod: JsonObject) -> ManagedProcess | None:
        """The process that stands for a Pod of this host, if it has one."""
        with self._lock:
            life = self._lives.get(pod["metadata"]["uid"])
            return life.process if life is not None else None

    def pods(self) -> list[JsonObject]:
        """The Pods bound to this host. Raises ApiError."""
        return self.api.list("v1", "Pod", field_selector=f"spec.nodeName={self.name}")

    # What a kubelet does

    def _loop(self, period_seconds: float, work: Callable[[], None]) -> None:
        while not self._off.wait(period_seconds):
            try:
                work()
            except (ApiError, OSError, ProcessError):
                continue  # an outage, a conflict, a ConfigMap to come: the next round sees what became of it
        self.api.close()

    def _tend_pods(self) -> None:
        failed: ApiError | OSError | None = None
        for pod in self.pods():
            try:
                self._tend_pod(pod)
            except (ApiError, OSError) as error:  # its own trouble: the others are tended all the same
                failed = error
        if failed is not None:
            raise failed

    def _tend_pod(self, pod: JsonObject) -> None:
        uid = pod["metadata"]["uid"]
        with self._lock:
            if self._off.is_set():
                return
            if "deletionTimestamp" in pod["metadata"]:
                if self._has_ended(uid, pod["metadata"].get("deletionGracePeriodSeconds", 0)):
                    self._finish(pod)
                return
            life = self._lives.get(uid) or self._admit(pod)
            containers = life.tend(pod, lambda: self._runner(self, pod), time.monotonic())
            if containers != life.written or containers.ready != says_ready(pod):
                meta = pod["metadata"]
                status = pod_status(pod, containers, self.address, life.address)
                self.api.patch("v1", "Pod", meta["name"], {"status": status}, meta["namespace"], "status")
                life.written = containers

    def _admit(self, pod: JsonObject) -> PodLife:
        address = self.address
        if self._free_addresses and not pod["spec"].get("hostNetwork", False):
            address = self._free_addresses.pop(0)
            _change_address("replace", address)
        life = self._lives[pod["metadata"]["uid"]] = PodLife(address)
        return life

    def _refresh_pods(self) -> None:
        failed: ApiError | OSError | ProcessError | None = None
        for pod in self.pods():
            with self._lock:
                known = pod["metadata"]["uid"] in self._lives and not self._off.is_set()
            if known and "deletionTimestamp" not in pod["metadata"]:
                try:
                    self._refresh(self, pod)
                except (ApiError, OSError, ProcessError) as error:  # its own trouble, as above
                    failed = error
        if failed is not None:
            raise failed

    def _has_ended(self, uid: str, grace_seconds: float) -> bool:
        """Ask a Pod's process to end, or kill it when its grace is over; True once it is gone."""
        life = self._lives.get(uid)
        if life is not None and not life.has_ended(grace_seconds, time.monotonic()):
            return False
        if life is not None and life.process in self.processes:
            self.processes.remove(life.process)
        if self._lives.pop(uid, None) is not None:
            self._give_back(life)
        return True

    def _give_back(self, life: PodLife | None) -> None:
        if life is not None and life.address != self.address:
            _change_address("delete", life.address)
            self._free_addresses.append(life.address)

    def _finish(self, pod: JsonObject) -> None:
        meta = pod["metadata"]
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        self.api.delete("v1", "Pod", meta["name"], meta["namespace"], options)

    def _stay_ready(self) -> None:
        """Renew, and take back what the controllers said of a host that an outage kept from renewing."""
        self._renew()
        if not says_ready(self.api.get("v1", "Node", self.name)):
            self._say_ready()

    def _say_ready(self) -> None:
        self.api.patch("v1", "Node", self.name, {"status": self._node_status()}, subresource="status")

    def _node_status(self) -> JsonObject:
        now = timestamp()
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


def _only_the_object(_host: SimulatedHost, _pod: JsonObject) -> None:
    """The runner of a host whose Pods are objects alone."""


def _nothing_to_do(_host: SimulatedHost, _pod: JsonObject) -> None:
    """The refresh of such a host."""


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
