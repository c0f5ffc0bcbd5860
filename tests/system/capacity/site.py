"""One installed kvpool with a real Mooncake master, and the short ways to ask both of them and the kernel.

Hosts have a /mnt and a boot id of their own; unit folders are below /mnt/kvpool, SSD units in /mnt/ssd.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.neighbours.mooncake import MooncakeMaster
from devcluster.hosts import SimulatedHost, host_address
from devcluster.process import ManagedProcess
from devcluster.rest import JsonObject
from kvpool.api import labels
from kvpool.api.quantity import parse_quantity
from tests.harness import planes
from tests.harness.installation import Installation
from tests.harness.waiting import wait_until
from tests.system.capacity.gate import Gate
from tests.system.capacity.scrape import series

KVPOOL = "kvpool.dev/v1alpha1"
NAMESPACE = "inference"
MIB = 1 << 20
BIND_SECONDS = 45.0
SETTLE_SECONDS = 45.0
HOST_FOLDER = "/mnt/kvpool"
SSD_FOLDER = "/mnt/ssd"
SELECTOR = {"matchLabels": {"pool": "gpu"}}
STATES = ("declared", "admitted", "bound", "used", "foreign", "unknown")
FIRST_HOST = 100
"""Clear of the addresses that hosts of single tests get."""
METRICS_PORTS = {"operator": 8080, "agent": 8081}

_number = itertools.count(1)


@dataclass
class Site:
    """Hosts `infra-0` (operators, master) and `node-1`.. (agents, keepers)."""

    installed: Installation
    master: MooncakeMaster | None
    gate: Gate

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
    def admin(self) -> Any:  # noqa: ANN401 - manifests are JSON
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

    # What people do

    def apply(self, kind: str, name: str, spec: JsonObject, namespace: str | None = None) -> JsonObject:
        """Server-side apply of one of our kinds."""
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        manifest = {"apiVersion": KVPOOL, "kind": kind, "metadata": metadata, "spec": spec}
        applied: JsonObject = self.admin.apply(manifest, field_manager="people")
        return applied

    def budget(self, *tiers: JsonObject, name: str = "gpu", mode: str = "Enforce", **spec: Any) -> None:  # noqa: ANN401 - fields of the spec
        """Create or edit a budget for all nodes with agents; DRAM and SSD when no tier is given."""
        usual = (
            {"name": "DRAM", "perNode": "256Mi", "reserve": "64Mi"},
            {"name": "SSD", "perNode": "128Mi", "reserve": "0", "path": SSD_FOLDER},
        )
        given = {"mode": mode, "nodeSelector": SELECTOR, "tiers": list(tiers or usual), **spec}
        self.apply("TierBudget", name, given)

    def pool(self, name: str, mode: str = "Enforce", *, store: bool = True, **spec: Any) -> None:  # noqa: ANN401 - fields of the spec
        """Create or edit a pool; upper-case words are tiers (`DRAM="64Mi"`), others are fields."""
        tiers = [{"name": word, "size": size} for word, size in spec.items() if word.isupper()]
        rest = {word: value for word, value in spec.items() if not word.isupper()}
        mooncake = {"mooncake": {"master": {"serviceRef": {"name": "mooncake-master"}}}}
        chosen = {"mode": mode, "tiers": tiers, "store": mooncake if store else {"none": {}}}
        self.apply("KVPool", name, {**chosen, **rest}, NAMESPACE)

    @contextlib.contextmanager
    def bound_pool(self, *, store: bool = True, **spec: Any) -> Iterator[str]:  # noqa: ANN401 - fields of the spec
        """A pool of its own name, bound; in the end it is deleted and its memory given back."""
        name = f"pool-{next(_number)}"
        self.pool(name, store=store, **spec)
        try:
            self.wait_bound(name)
            yield name
        finally:
            self.delete_pool(name)

    def delete_pool(self, name: str, reclaim: str = "Release") -> None:
        """Delete a pool whose memory is to be given back, and wait until it is."""
        if self.admin.find(KVPOOL, "KVPool", name, NAMESPACE) is not None:
            change = {"spec": {"reclaimPolicy": reclaim, "mode": "Enforce"}}
            self.admin.patch(KVPOOL, "KVPool", name, change, NAMESPACE)
            for node in self.nodes:  # the policy is on record with each unit before the pool goes
                wait_until(
                    lambda node=node: all(  # type: ignore[misc] # mypy infers no type for a bound default
                        unit.get("reclaimPolicy", "Retain") == reclaim
                        for unit in self.decided(node, name).values()
                    ),
                    20,
                    f"units of {name} on {node} to follow reclaimPolicy {reclaim}",
                )
            self.admin.delete(KVPOOL, "KVPool", name, NAMESPACE)
        wait_until(
            lambda: not any(self.decided(node, name) for node in self.nodes),
            SETTLE_SECONDS,
            f"the units of {name} to be given back",
        )

    def delete_pool_object(self, name: str) -> None:
        """Delete a pool and nothing else."""
        self.admin.delete(KVPOOL, "KVPool", name, NAMESPACE)

    # What kvpool says

    def status(self, name: str, kind: str = "KVPool") -> JsonObject:
        """The status of a pool or a budget."""
        found = self.admin.get(KVPOOL, kind, name, NAMESPACE if kind in ("KVPool", "PDGroup") else None)
        status: JsonObject = found.get("status", {})
        return status

    def figures(self, name: str, tier: str = "DRAM", kind: str = "KVPool") -> dict[str, int]:
        """Bytes of a tier by state; empty while the status does not name the tier."""
        for found in self.status(name, kind).get("tiers", []):
            if found["name"] == tier:
                return {state: parse_quantity(found[state]) for state in STATES}
        return {}

    def condition(self, name: str, kind_of: str, kind: str = "KVPool") -> JsonObject:
        """One condition; empty when it is not there."""
        found = [one for one in self.status(name, kind).get("conditions", []) if one["type"] == kind_of]
        return found[0] if found else {}

    def wait_condition(
        self, name: str, says: str, pattern: str = "", kind: str = "KVPool", seconds: float = BIND_SECONDS
    ) -> JsonObject:
        """Wait for `Type=Status reason` with a message that matches; returns the condition."""
        kind_of, _, rest = says.partition("=")
        status, _, reason = rest.partition(" ")
        seen: list[JsonObject] = [{}]

        def said() -> JsonObject | None:
            seen[0] = one = self.condition(name, kind_of, kind)
            fits = one.get("status") == status and (not reason or one.get("reason") == reason)
            return one if fits and re.search(pattern, one.get("message", "")) else None

        try:
            return wait_until(said, seconds, f"{kind} {name} to say {says} /{pattern}/") or {}
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {seen[0]}") from error

    def wait_bound(self, name: str, seconds: float = BIND_SECONDS) -> None:
        """Wait until everything that the pool's newest spec asks for is bound."""

        def bound() -> bool:
            found = self.admin.get(KVPOOL, "KVPool", name, NAMESPACE)
            condition = self.condition(name, "Bound")
            newest: bool = condition.get("observedGeneration") == found["metadata"]["generation"]
            return newest and condition.get("status") == "True"

        try:
            wait_until(bound, seconds, f"pool {name} to be bound")
        except AssertionError as error:
            told = json.dumps(self.status(name).get("conditions"), indent=1)
            raise AssertionError(f"{error}; {told}") from error

    def decided(self, node: str, pool: str) -> dict[str, JsonObject]:
        """The units of a pool in a KVNode's spec, by name."""
        found = self.admin.find(KVPOOL, "KVNode", node)
        units = (found or {}).get("spec", {}).get("units", [])
        return {unit["name"]: unit for unit in units if unit["pool"] == f"{NAMESPACE}/{pool}"}

    def unit(self, node: str, pool: str, tier: str = "DRAM") -> JsonObject:
        """The one unit of a pool's tier on a node."""
        (unit,) = [unit for unit in self.decided(node, pool).values() if unit["tier"] == tier]
        return unit

    def reported(self, node: str, unit: str) -> JsonObject:
        """What a KVNode's status says of a unit; empty when nothing."""
        found = self.admin.get(KVPOOL, "KVNode", node).get("status", {}).get("units", [])
        return next((one for one in found if one["name"] == unit), {})

    def wait_reported(
        self, node: str, unit: JsonObject, phase: str, seconds: float = BIND_SECONDS
    ) -> JsonObject:
        """Wait until the KVNode's status has this generation of a unit in a phase; returns what it says."""

        def said() -> JsonObject | None:
            told = self.reported(node, unit["name"])
            return (
                told if (told.get("generation"), told.get("phase")) == (unit["generation"], phase) else None
            )

        return wait_until(said, seconds, f"{node} {unit['name']} to be {phase}") or {}

    def metric(self, component: str, name: str, node: str | None = None) -> dict[str, float]:
        """Series of one metric, `{labels}` to value, of the operator or of a node's agent."""
        host = self.hosts[node or self.operator_hosts()[-1]]
        return series(f"http://{host.address}:{METRICS_PORTS[component]}/metrics", name)

    def capacity_steps(self) -> float:
        """How many capacity steps of the leader succeeded."""
        found = self.metric("operator", "kvpool_reconcile_total")
        return sum(value for name, value in found.items() if 'loop="capacity"' in name and "success" in name)

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
