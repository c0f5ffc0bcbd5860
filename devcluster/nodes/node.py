"""One node: its namespaces, cable, disk, containerd, kubelet and kube-proxy; started, cut from power."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from devcluster.controlplane import ControlPlane
from devcluster.nodes import cabling, cgroups, kubelet, proxy, runtime
from devcluster.nodes.layers import LayerStore
from devcluster.nodes.layout import DISK_FOLDERS, MEMORY_FOLDER, RUN_FOLDER
from devcluster.nodes.member import Member
from devcluster.nodes.settings import ClusterSettings

KERNEL_SETTINGS = {**cabling.FORWARDING, "net.bridge.bridge-nf-call-iptables": "1"}
MACHINE_ID = Path("/etc/machine-id")


class Node:
    """A machine with a name: its disk (`folder/disk`) and machine id stay, its memory and boot id do not."""

    def __init__(
        self, name: str, folder: Path, cluster: str, settings: ClusterSettings, layers: LayerStore
    ) -> None:
        self.name = name
        self.member = Member(name, folder)
        self.disk = folder / "disk"
        self._cluster = cluster
        self._settings = settings
        self._layers = layers
        self._boot_id_file = folder / "boot-id"
        self._cgroup = ""

    @property
    def boot_id(self) -> str:
        """The boot id of the present, or last, life."""
        return self._boot_id_file.read_text().strip()

    def power_on(self) -> None:
        """Start the machine, lay its cable and start containerd."""
        binds = self._disk_binds() | self._identity_binds()
        memory = {
            MEMORY_FOLDER: f"mode=1777,size={self._settings.shared_memory_bytes}",
            RUN_FOLDER: "mode=755",
        }
        self._cgroup = cgroups.make(self._cluster, self.name)
        self.member.start(memory, binds, KERNEL_SETTINGS)
        cabling.plug(self.member)
        self._layers.lend_to(self._disk_folder("/var/lib"))
        runtime.start(self.member, self._settings.pause, self._boot_id_file)

    def join(self, plane: ControlPlane) -> None:
        """Start what makes a machine a Node of the cluster; it becomes Ready some time later."""
        kubelet.start(self.member, plane, self._settings, self._cgroup)
        proxy.start(self.member, plane, self.name)

    def restart_kubelet(self, plane: ControlPlane) -> None:
        """End kubelet at once and start it again; pods run on."""
        self.member.end("kubelet")
        kubelet.start(self.member, plane, self._settings, self._cgroup)

    def power_cut(self) -> None:
        """End everything at once, with nobody told: the cable goes first, else dying sockets say goodbye."""
        if self.member.running:
            cabling.cut(self.name)
        self.member.kill()
        cgroups.remove(self._cluster, self.name)

    def wipe(self) -> None:
        """Make it another machine under the same name: an empty disk, another machine id."""
        shutil.rmtree(self.disk, ignore_errors=True)
        (self.member.folder / "machine-id").unlink(missing_ok=True)

    def _disk_folder(self, seen: str) -> Path:
        return self.disk / seen.strip("/").replace("/", "-")

    def _disk_binds(self) -> dict[str, str]:
        binds = {}
        for seen in DISK_FOLDERS:
            real = self._disk_folder(seen)
            real.mkdir(parents=True, exist_ok=True)
            binds[seen] = str(real)
        return binds

    def _identity_binds(self) -> dict[str, str]:
        """A new boot id for each start, and the machine's own id."""
        self._boot_id_file.write_text(f"{uuid.uuid4()}\n")
        binds = {f"/{runtime.BOOT_ID}": str(self._boot_id_file)}
        machine_id = self.member.folder / "machine-id"
        if not machine_id.exists():
            machine_id.write_text(f"{uuid.uuid4().hex}\n")
        if MACHINE_ID.exists():
            binds[str(MACHINE_ID)] = str(machine_id)
        return binds
