"""A whole cluster: started, its nodes cut from power or network and healed, stopped without a trace."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType

from devcluster import recipe
from devcluster.cache import cache_folder
from devcluster.controlplane import ControlPlane
from devcluster.nodes import cabling, cgroups, requirements, runtime
from devcluster.nodes.headquarters import Headquarters
from devcluster.nodes.layers import LayerStore
from devcluster.nodes.layout import CONTROL_PLANE, INDICES, node_index, node_names
from devcluster.nodes.member import RUN_SECONDS
from devcluster.nodes.node import Node
from devcluster.nodes.settings import ClusterSettings
from devcluster.process import ManagedProcess, ProcessError
from devcluster.rest import ApiError

READY_SECONDS = 120.0
POLL_SECONDS = 0.1
NAME_FILE = "name"
NOT_READY = ("False", "Unknown")
NEEDED = ("kube-apiserver", "kubelet", "coredns")  # one of each part that must be built


class RealCluster:
    """Real nodes in this sandbox, which can hold one such cluster at a time; state lies in `folder`.

    `start` brings up `count` nodes and returns when all are Ready. Clients reach the API server, pods and
    Services from the sandbox itself. Methods take node names, `node1` to `node9`; those that start or import
    raise ProcessError when a program fails, with the end of its log.
    `name` is what its cgroups are called; it is in the file `name` too.
    """

    def __init__(self, folder: Path, count: int = 3, settings: ClusterSettings | None = None) -> None:
        self.folder = folder.resolve()
        self.settings = settings or ClusterSettings()
        self._first_names = node_names(count)
        self.name = f"{cgroups.PREFIX}{secrets.token_hex(4)}"
        self._owner = ManagedProcess("owner", ["sleep", "infinity"], self.folder / "owner.log")
        self._headquarters = Headquarters(self.folder / "cp", self.settings)
        self._nodes: dict[str, Node] = {}
        self._layers = LayerStore(self.settings.images, self.settings.pause)

    # Life of the cluster

    def start(self) -> RealCluster:
        """Start the control plane and the first nodes. Raises NodesImpossibleError or NotBuiltError too."""
        requirements.require([self.folder, cache_folder()])
        if cabling.bridge_exists():
            raise requirements.NodesImpossibleError(
                "this sandbox has a cluster of nodes already: stop it first"
            )
        for program in NEEDED:
            recipe.binary(program)
        cgroups.prune()
        try:
            self._start()
        except BaseException as error:  # also when interrupted, nothing half started may stay; raised on
            self._stop_after(error)
            raise
        return self

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / NAME_FILE).write_text(self.name)
        cgroups.claim(self.name, self._owner.start().pid)
        cabling.build_bridge()
        _together([self._headquarters.start, self._power_on_first])
        for name in self._first_names:
            self._nodes[name].join(self.plane)
        self.wait_ready()
        self._wait(self._default_account_exists, READY_SECONDS, "the default ServiceAccount")

    def _power_on_first(self) -> None:
        self._layers.open()
        _together([self._machine(name).power_on for name in self._first_names])

    def stop(self) -> None:
        """End everything: processes, mounts, links, cgroups, and the nodes' disks; logs stay.

        Every step is taken, whatever the others raise: OSError, CablingError or CgroupError.
        """
        nodes = list(self._nodes.values())
        with contextlib.ExitStack() as steps:  # the last one first
            steps.callback(self._layers.close)
            steps.callback(self._nodes.clear)
            for node in nodes:
                steps.callback(shutil.rmtree, node.disk, ignore_errors=True)
            steps.callback(cgroups.remove, self.name)
            steps.callback(self._owner.kill)
            steps.callback(cabling.remove_bridge, [CONTROL_PLANE, *self._nodes])
            steps.callback(self._headquarters.stop)
            for node in nodes:
                steps.callback(node.member.kill)

    def _stop_after(self, first: BaseException) -> None:
        """Stop, and let what goes wrong then be a note of the error that it was stopped for."""
        try:
            self.stop()
        except (OSError, cabling.CablingError, cgroups.CgroupError) as error:
            first.add_note(f"Nor could all of it be stopped: {error}")

    def __enter__(self) -> RealCluster:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if value is None:
            self.stop()
        else:
            self._stop_after(value)

    def stop_control_plane(self) -> None:
        """End etcd, API server, controllers and scheduler at once; nodes and pods go on, DNS too."""
        self.plane.stop()

    def start_control_plane(self) -> None:
        """Start them again with the same data, and return when the API server is ready."""
        self.plane.start()

    # What there is

    @property
    def plane(self) -> ControlPlane:
        """The control plane: clients, tokens, the audit log."""
        return self._headquarters.plane

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, for use in this sandbox."""
        return self.plane.kubeconfig

    @property
    def nodes(self) -> list[str]:
        """Names of the nodes that run."""
        return [name for name, node in self._nodes.items() if node.member.running]

    def boot_id(self, name: str) -> str:
        """The boot id of a node's present, or last, life; its containers see it too."""
        return self._node(name).boot_id

    def root(self, name: str) -> Path:
        """A node's file system, as a path to read and write from here."""
        return self._node(name).member.root

    def run(
        self, name: str, argv: Sequence[str | Path], deadline_seconds: float = RUN_SECONDS
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a node: its files, network and processes."""
        return self._node(name).member.run(argv, deadline_seconds=deadline_seconds)

    def import_image(self, archive: Path, names: Sequence[str] = ()) -> None:
        """Load an image archive into nodes: the named ones, or all that run."""
        members = [self._node(name).member for name in names or self.nodes]
        _together([partial(runtime.import_image, member, archive) for member in members])

    # What happens to nodes

    def start_node(self, name: str, fresh: bool = False) -> None:
        """Power on: a node that was cut, with its disk, or `fresh`: a new machine of that name.

        A name that was never used joins the cluster. Returns when kubelet was started: see `wait_ready`.
        """
        if fresh and name in self._nodes:
            self._nodes[name].wipe()
        node = self._machine(name)
        node.power_on()
        node.join(self.plane)

    def restart_kubelet(self, name: str) -> None:
        """End a node's kubelet at once and start it again; the node's pods run on."""
        self._node(name).restart_kubelet(self.plane)

    def power_cut(self, name: str) -> None:
        """End every process of the node at once; its peers are not told. The disk stays."""
        self._node(name).power_cut()

    def partition(self, name: str) -> None:
        """Pull the node's cable: its pods go on, cut off from everything outside the node."""
        cabling.cut(self._node(name).name)

    def partition_from_api(self, name: str) -> None:
        """Cut the node and its pods off from the control plane alone; they still reach other nodes."""
        cabling.drop_at(self._headquarters.member, self._node(name).name)

    def heal(self, name: str) -> None:
        """Undo either partition; none is fine."""
        cabling.mend(self._node(name).name)
        cabling.admit_at(self._headquarters.member, name)

    def wait_ready(self, names: Sequence[str] = (), deadline_seconds: float = READY_SECONDS) -> None:
        """Wait until the nodes (all that run, unless named) are Ready in their present life.

        The boot id tells: for some time after a power cut the API still says Ready of the life before.
        """
        for name in names or self.nodes:
            self._wait(partial(self._is_ready, name), deadline_seconds, f"{name} to be Ready")

    def wait_not_ready(self, name: str, deadline_seconds: float = READY_SECONDS) -> None:
        """Wait until the control plane has taken notice that a node is silent."""
        self._wait(lambda: self._ready_word(name) in NOT_READY, deadline_seconds, f"{name} to be NotReady")

    # How

    def _node(self, name: str) -> Node:
        if name not in self._nodes:
            raise ValueError(f"{name!r} is none of the nodes {', '.join(self._nodes)}")
        return self._nodes[name]

    def _machine(self, name: str) -> Node:
        """The node of that name, new if there was none. Raises ValueError."""
        node_index(name)
        if name not in self._nodes:
            self._nodes[name] = Node(name, self.folder / name, self.name, self.settings, self._layers)
        return self._nodes[name]

    def _is_ready(self, name: str) -> bool:
        return self._ready_word(name, self.boot_id(name)) == "True"

    def _ready_word(self, name: str, boot_id: str = "") -> str:
        """Status of the Ready condition; empty without one, or when it is of another life than `boot_id`."""
        try:
            status = self.plane.admin.get("v1", "Node", name)["status"]
        except (ApiError, OSError):
            return ""
        if boot_id and status.get("nodeInfo", {}).get("bootID") != boot_id:
            return ""
        words = [one["status"] for one in status.get("conditions", []) if one["type"] == "Ready"]
        return str(words[0]) if words else ""

    def _default_account_exists(self) -> bool:
        with contextlib.suppress(ApiError, OSError):
            return bool(self.plane.admin.get("v1", "ServiceAccount", "default", namespace="default"))
        return False

    def _wait(self, ready: Callable[[], bool], deadline_seconds: float, what: str) -> None:
        end = time.monotonic() + deadline_seconds
        while not ready():
            if time.monotonic() > end:
                raise ProcessError(f"waited {deadline_seconds:g} s for {what}: see the logs in {self.folder}")
            time.sleep(POLL_SECONDS)


def _together(steps: Iterable[Callable[[], None]]) -> None:
    """Take the steps at the same time, and raise the first one's error when all have ended."""
    with ThreadPoolExecutor(max_workers=len(INDICES)) as pool:
        for future in [pool.submit(step) for step in steps]:
            future.result()
