"""One installed kvpool with a real Mooncake master, and the short ways to ask both of them and the kernel.

Hosts have a /mnt and a boot id of their own; unit folders are below /mnt/kvpool, SSD units in /mnt/ssd.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from demo.neighbours.mooncake import MooncakeMaster
from devcluster.hosts import SimulatedHost, host_address
from devcluster.process import ManagedProcess
from devcluster.rest import Api, JsonObject
from kvpool.api import labels
from tests.harness import planes
from tests.harness.installation import Installation
from tests.harness.objects import NAMESPACE, KvpoolObjects
from tests.harness.waiting import wait_until
from tests.system.capacity.gate import Gate
from tests.system.capacity.scrape import series

HOST_FOLDER = "/mnt/kvpool"
SSD_FOLDER = "/mnt/ssd"
FIRST_HOST = 100
"""Clear of the addresses that hosts of single tests get."""
PLUGIN = Path(sys.executable).with_name("kubectl-kvpool")
COMMAND_SECONDS = 150
METRICS_PORTS = {"operator": 8080, "agent": 8081}


@dataclass
class Site(KvpoolObjects):
    """Hosts `infra-0` (operators, master) and `node-1`.. (agents, keepers)."""

    installed: Installation
    master: MooncakeMaster | None
    gate: Gate
    ssd_folder: str = SSD_FOLDER

    # Life

    @classmethod
    def start(
        cls,
        folder: Path,
        network: int,
        *,
        hosts: int = 2,
        infra: int = 1,
        mode: str = "Enforce",
        store: bool = True,
        prepare: Callable[[SimulatedHost], None] | None = None,
        **values: str,
    ) -> Site:
        """Start everything; `prepare` is called with each host, `values` are the chart's."""
        plane = planes.start_or_skip(folder / "plane", controllers=True, scheduler=True)
        installed = Installation(plane, folder, namespace=f"kvpool-{network}")
        gate = Gate()
        site = cls(installed, None, gate)
        try:
            runner = installed.runner

            def run(host: SimulatedHost, pod: JsonObject) -> ManagedProcess | None:
                gate.check(host, pod)
                return runner(host, pod)

            names = [f"infra-{n}" for n in range(infra)] + [f"node-{n}" for n in range(1, hosts + 1)]
            for index, name in enumerate(names):
                labelled = {"kvpool.dev/class": "infra"} if index < infra else {"pool": "gpu"}
                host = SimulatedHost(
                    plane,
                    name,
                    host_address(FIRST_HOST + index, network),
                    folder / name,
                    labels=labelled,
                    runner=run,
                    refresh=runner.refresh,
                    own_mounts=True,
                )
                installed.hosts[name] = host.bring_up()
                host.files.outer(SSD_FOLDER).mkdir(parents=True)
                site.write_devices(name, 2)
                if prepare is not None:
                    prepare(host)
            if store:
                site.start_master()
            settings = {
                "agent.hostFolder": HOST_FOLDER,
                "agent.devices": "simulated:/var/lib/kvpool/devices.json",
                "agent.ssdFolders[0]": SSD_FOLDER,
            }
            installed.install(mode, **{**settings, **values})
            plane.create_namespace(NAMESPACE)
            if store:
                site._announce_master()
        except BaseException:  # also when interrupted, nothing half started may stay; raised on
            site.stop()
            raise
        return site

    def stop(self) -> None:
        """End everything."""
        self.installed.stop()
        if self.master is not None:
            self.master.stop()
        for host in self.installed.hosts.values():
            host.take_away()
        self.installed.plane.stop()

    def start_master(self) -> None:
        """Start the master (again), on the address of `infra-0`."""
        host = self.hosts["infra-0"]
        log = self.installed.folder / "mooncake.log"
        self.master = MooncakeMaster(address=host.address, log_path=log)
        self.master.wait_ready()

    def _announce_master(self) -> None:
        """A Service without selector, and its one endpoint."""
        assert self.master is not None
        metadata = {"name": "mooncake-master", "namespace": NAMESPACE}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
        self.admin.create({**service, "spec": {"clusterIP": "None", "ports": [{"port": 50051}]}})
        labelled = {"kubernetes.io/service-name": "mooncake-master"}
        self.admin.create(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {**metadata, "labels": labelled},
                "addressType": "IPv4",
                "endpoints": [{"addresses": [self.hosts["infra-0"].address], "conditions": {"ready": True}}],
                "ports": [{"port": 50051}],
            }
        )

    def write_devices(self, node: str, count: int) -> None:
        """Say how many healthy accelerators a node has."""
        devices = [{"id": f"dev{n}", "uuid": f"{node}-dev{n}", "faults": []} for n in range(count)]
        file = self.hosts[node].files.outer(f"{HOST_FOLDER}/devices.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"devices": devices}))

    # Short names

    @property
    def admin(self) -> Api:
        """The administrator's client."""
        return self.installed.plane.admin

    @property
    def hosts(self) -> dict[str, SimulatedHost]:
        """By name."""
        return self.installed.hosts

    @property
    def nodes(self) -> list[str]:
        """The nodes with agents."""
        return [name for name in self.hosts if name.startswith("node-")]

    @property
    def mooncake(self) -> MooncakeMaster:
        """The master, which has to be there."""
        assert self.master is not None
        return self.master

    def operator_hosts(self) -> list[str]:
        """Where operators run."""

        def running() -> list[str]:
            selector = "app.kubernetes.io/component=operator"
            pods = self.admin.list("v1", "Pod", self.installed.namespace, label_selector=selector)
            found = []
            for pod in pods:
                host = self.hosts.get(pod["spec"].get("nodeName", ""))
                process = host.process_of(pod) if host is not None else None
                if host is not None and process is not None and process.running:
                    found.append(host.name)
            return found

        return wait_until(running, 20, "a running operator")

    @property
    def operator_user(self) -> str:
        """As the audit log calls the operator."""
        return f"system:serviceaccount:{self.installed.namespace}:kvpool-operator"

    def metric(self, component: str, name: str, node: str | None = None) -> dict[str, float]:
        """Series of one metric, `{labels}` to value, of the operator or of a node's agent."""
        host = self.hosts[node or self.operator_hosts()[-1]]
        return series(f"http://{host.address}:{METRICS_PORTS[component]}/metrics", name)

    def capacity_steps(self) -> float:
        """How many capacity steps of the leader succeeded."""
        found = self.metric("operator", "kvpool_reconcile_total")
        return sum(value for name, value in found.items() if 'loop="capacity"' in name and "success" in name)

    def uninstall(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Run the plugin's `uninstall --drain`."""
        where = f"--kubeconfig={self.installed.plane.kubeconfig}"
        whose = f"--operator-namespace={self.installed.namespace}"
        words = [str(PLUGIN), "uninstall", "--drain", where, whose, *flags]
        return subprocess.run(words, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)

    # What the machine says

    def keeper_pods(self, node: str, pool: str) -> list[JsonObject]:
        """Living keeper Pods of a pool on a node."""
        selector = f"{labels.COMPONENT}=keeper,{labels.NODE}={node},{labels.POOL}={pool}"
        pods: list[JsonObject] = self.admin.list(
            "v1", "Pod", self.installed.namespace, label_selector=selector
        )
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def keeper(self, node: str, pool: str, tier: str = "DRAM") -> ManagedProcess:
        """The running keeper of a pool's tier on a node."""
        unit = self.unit(node, pool, tier)["name"]

        def running() -> ManagedProcess | None:
            for pod in self.keeper_pods(node, pool):
                process = self.hosts[node].process_of(pod)
                named = pod["metadata"]["annotations"][labels.UNIT] == unit
                if named and process is not None and process.running:
                    return process
            return None

        found = wait_until(running, 20, f"a keeper of {unit} on {node}")
        assert found is not None
        return found

    def segment_file(self, node: str, unit: JsonObject) -> Path:
        """The file that holds a unit, as anybody may read it."""
        key = f"{unit['name']}-g{unit['generation']}"
        inner = (
            f"{SSD_FOLDER}/kvpool-{key}/segment"
            if unit["backend"] == "file"
            else f"{HOST_FOLDER}/units/{key}/mem/segment"
        )
        return self.hosts[node].files.seen(inner)

    def keeper_status(self, node: str, unit: JsonObject) -> JsonObject:
        """What the unit's keeper last wrote of itself."""
        key = f"{unit['name']}-g{unit['generation']}"
        text = self.hosts[node].files.seen(f"{HOST_FOLDER}/units/{key}/status.json").read_text()
        told: JsonObject = json.loads(text)
        return told


SiteFactory = Callable[..., Site]
