"""Four hosts in two racks, engines and warm standbys on them, and a route through a real gateway."""

from __future__ import annotations

import http.client
import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demo.load import LoadProcess, SentRequest
from demo.neighbours.accelerators import Accelerator, AcceleratorFile
from demo.neighbours.traefik import GATEWAY_API, TraefikGateway
from devcluster import sandbox
from devcluster.hosts import SimulatedHost, host_address
from devcluster.ports import free_port
from devcluster.process import ManagedProcess
from devcluster.rest import Api, ApiError, JsonObject
from kvpool.api.supernode import EvidenceClass
from tests.harness import planes
from tests.harness.installation import DEVICES_FILE, Installation
from tests.harness.waiting import wait_until
from tests.system.failover import manifests
from tests.system.failover.manifests import API_VERSION, GROUP, NAMESPACE, SUPERNODE

DEVICE = "dev0"
DECODE, STANDBY = "decode", "decode-standby"
OUTPUT = "edge"
PROBE_PATH = f"/.well-known/kvpool/{NAMESPACE}/{GROUP}/{OUTPUT}"
REQUESTS_PER_SECOND = 60.0
AGENT_METRICS_PORT = 8081
HTTP_SECONDS = 2.0
WATCH_SECONDS = 0.02
STAYS_POLL_SECONDS = 0.2
SETTLE_SECONDS = 40.0
FAULT_POINT = "KVPOOL_FAULT_POINT"
OPERATOR_PODS = "app.kubernetes.io/component=operator"
NODES = ("node-1", "node-2", "node-3", "node-4")


class FailoverWorld:
    """One installation with a PDGroup of two slots (and two standbys) that serve.

    Every test leaves hosts up and the operator running; `settle` heals the rest, so that tests may come in
    any order.
    """

    def __init__(self, folder: Path, network: int, *, infra_hosts: int = 1) -> None:
        self.folder = folder
        self.network = network
        self._infra_hosts = infra_hosts
        self._numbers = itertools.count(1)
        plane = planes.start_or_skip(folder / "plane", controllers=True, scheduler=True)
        plane.install_gateway_api()
        self.installed = Installation(plane, folder, namespace=f"kvpool-{network}")
        self.api: Api = plane.admin
        self.gateway = TraefikGateway(
            self.api, folder, address=sandbox.OWN_ADDRESS, port=free_port(sandbox.OWN_ADDRESS)
        )
        self.engine_port = free_port(sandbox.OWN_ADDRESS)

    # Life

    def start(self, **values: str) -> FailoverWorld:
        """Bring everything up and return once both slots serve at full weight."""
        for index in range(self._infra_hosts):
            self._add_host(f"infra-{index}", {"kvpool.dev/class": "infra"})
        for index, name in enumerate(NODES, start=1):
            rack = f"rack-{(index + 1) // 2}"
            host = {"pool": "gpu", "kvpool.dev/board": f"board-{index}", "kvpool.dev/rack": rack}
            self._add_host(name, host)
            accelerators = self.accelerators(name)
            accelerators.path.parent.mkdir(parents=True, exist_ok=True)
            accelerators.create([Accelerator(DEVICE, f"GPU-{name}")])
        self.installed.install(**values)
        self.gateway.start()
        self.installed.plane.create_namespace(NAMESPACE)
        for index, name in enumerate(NODES):
            role = STANDBY if index % 2 else DECODE
            pod = manifests.engine_pod(f"{role}-{name}", name, DEVICE, port=self.engine_port, role=role)
            self.api.create(pod)
        self.api.create(manifests.supernode())
        self.api.create(manifests.pool())
        wait_until(self._all_registered, 30, "an engine on every agent", tolerate=(OSError,))
        # A group that is there before the operator knows all engines may take standbys for its first places.
        wait_until(self._all_heard, 30, "all engines to be known to the operator", tolerate=(ApiError,))
        self.api.create(manifests.group(self.gateway.parent_ref, port=self.engine_port))
        self.settle(60)
        return self

    def stop(self) -> None:
        """End everything."""
        for host in self.installed.hosts.values():
            host.take_away()
        self.gateway.stop()
        self.installed.stop()
        self.installed.plane.stop()

    def _add_host(self, name: str, labels: Mapping[str, str]) -> None:
        address = host_address(len(self.installed.hosts) + 1, self.network)
        plane, folder = self.installed.plane, self.folder / name
        runner = self.installed.runner
        host = SimulatedHost(
            plane,
            name,
            address,
            folder,
            labels=labels,
            runner=runner,
            refresh=runner.refresh,
            own_mounts=True,
        )
        self.installed.hosts[name] = host
        host.bring_up()

    # What is there

    def slots(self) -> dict[str, JsonObject]:
        """The slots by name."""
        found = self.api.list(API_VERSION, "EngineSlot", NAMESPACE)
        return {slot["metadata"]["name"]: slot for slot in found}

    def slot(self, name: str) -> JsonObject:
        """One slot."""
        return self.api.get(API_VERSION, "EngineSlot", name, NAMESPACE)

    def slot_on(self, node: str) -> str:
        """Name of the slot that a node holds."""
        return next(name for name, slot in self.slots().items() if node_of(slot) == node)

    def a_slot(self) -> tuple[str, str]:
        """Name and node of the first slot."""
        name, slot = min(self.slots().items())
        return name, node_of(slot)

    def remaps(self, slot: str, since_epoch: int = 0) -> list[JsonObject]:
        """Moves of a slot that left `since_epoch` or a later one, oldest first."""
        found = [
            remap
            for remap in self.api.list(API_VERSION, "Remap", NAMESPACE)
            if remap["spec"]["slot"] == slot and remap["spec"].get("fromEpoch", 0) >= since_epoch
        ]
        return sorted(found, key=lambda remap: remap["spec"]["epoch"])

    def kvnode(self, node: str) -> JsonObject:
        """One KVNode."""
        return self.api.get(API_VERSION, "KVNode", node)

    def epochs(self) -> dict[str, int]:
        """The slots' epochs."""
        return {name: slot["spec"].get("epoch", 0) for name, slot in self.slots().items()}

    def seats(self) -> dict[str, str]:
        """Which node each slot sits on."""
        return {name: node_of(slot) for name, slot in self.slots().items()}

    def spares(self) -> list[str]:
        """Nodes whose device nobody claims and nothing speaks against."""
        return [node for node in NODES if not self._held(node)]

    def _held(self, node: str) -> bool:
        spec = self.kvnode(node)["spec"]
        return bool(spec.get("claims") or spec.get("quarantine"))

    def _all_registered(self) -> bool:
        return all(self.engines_on(node) == 1 for node in NODES)

    def _all_heard(self) -> bool:
        nodes = [self.kvnode(node) for node in NODES]
        connected = all(condition(node, "AgentConnected") == "True" for node in nodes)
        return connected and all(node["status"]["devices"] for node in nodes) and self.spares_ready() == 4

    def spares_ready(self) -> int:
        """What the Supernode says of its spares."""
        status = self.api.get(API_VERSION, "Supernode", SUPERNODE).get("status", {})
        return int(status.get("spares", {}).get("ready", 0))

    def rack_of(self, node: str) -> str:
        """The rack label of a node."""
        return self.installed.hosts[node].labels["kvpool.dev/rack"]

    def engines_on(self, node: str) -> int:
        """How many engines are connected to a node's agent."""
        return int(sample(self.metrics(host=node, port=AGENT_METRICS_PORT), "kvpool_agent_engines"))

    def engine_health(self, node: str) -> tuple[str, int]:
        """State and epoch of the node's engine, by its own word; ("gone", 0) when it does not answer."""
        address = f"{self.installed.hosts[node].address}:{self.engine_port}"
        try:
            told = json.loads(get(address, "/health")[1])
        except OSError:
            return "gone", 0
        return str(told["state"]), int(told["epoch"])

    def metrics(self, component: str = "operator", host: str | None = None, port: int = 8080) -> str:
        """`/metrics` of the operator (or, with port 8081, an agent)."""
        address = self.installed.hosts[host or "infra-0"].address
        return get(f"{address}:{port}", "/metrics")[1]

    # What is done to it

    def accelerators(self, node: str) -> AcceleratorFile:
        """The file that says how a node's accelerators are."""
        return AcceleratorFile(self.installed.hosts[node].files.outer(DEVICES_FILE))

    def break_device(self, node: str) -> float:
        """Let a node's accelerator report a fatal code; returns when (monotonic seconds)."""
        fatal = EvidenceClass.FATAL
        self.accelerators(node).add_fault(DEVICE, source="driver", code="79", evidence_class=fatal)
        return time.monotonic()

    def replace_operator(self, fault_point: str = "") -> ManagedProcess:
        """Start the operator anew, to die once at `fault_point`; return its process once it leads."""
        before = self.installed.process("operator")
        self.installed.operator_env = {FAULT_POINT: fault_point} if fault_point else {}
        namespace = self.installed.namespace
        for pod in self.api.list("v1", "Pod", namespace, label_selector=OPERATOR_PODS):
            self.api.delete("v1", "Pod", pod["metadata"]["name"], namespace)
        wait_until(lambda: not before.running, 20, "the operator to end")
        process = self.installed.process("operator")
        self.wait_for_leader()
        process.env.pop(FAULT_POINT, None)  # what is started in its place is not to die
        self.installed.operator_env = {}
        return process

    def wait_for_leader(self, deadline_seconds: float = 20) -> float:
        """Return when (monotonic seconds) the operator was first seen to lead."""
        wait_until(self._leads, deadline_seconds, "an operator that leads", tolerate=(OSError,))
        return time.monotonic()

    def _leads(self) -> bool:
        return sample(self.metrics(), "kvpool_operator_is_leader") == 1

    def settle(self, deadline_seconds: float = SETTLE_SECONDS) -> None:
        """Replace broken accelerators, and wait until both slots serve and both spares are free again."""
        for node in NODES:
            if not self._is_sound(node):
                number = next(self._numbers)
                self.accelerators(node).create([Accelerator(DEVICE, f"GPU-{node}-{number}")])
        self.wait_until(self._is_settled, deadline_seconds, "two slots that serve and two spares")

    def wait_until(self, holds: Callable[[], object], deadline_seconds: float, what: str) -> None:
        """Wait, and say what all objects say when it was in vain."""
        try:
            wait_until(holds, deadline_seconds, what, tolerate=(ApiError, OSError))
        except AssertionError as missed:
            raise AssertionError(f"{missed}\n{self.told()}") from None

    def _is_sound(self, node: str) -> bool:
        kvnode = self.api.find(API_VERSION, "KVNode", node)
        in_quarantine = kvnode is not None and bool(kvnode["spec"].get("quarantine"))
        return not in_quarantine and '"fatal"' not in self.accelerators(node).path.read_text().lower()

    def _is_settled(self) -> bool:
        slots = self.slots().values()
        if len(slots) != 2 or not all(serves(slot) for slot in slots) or len(self.spares()) != 2:
            return False
        return self.spares_ready() == 2

    def told(self) -> str:
        """What the objects say, for messages."""
        kinds = (("Supernode", None), ("KVNode", None), ("PDGroup", NAMESPACE))
        lines = []
        for kind, namespace in (*kinds, ("EngineSlot", NAMESPACE), ("Remap", NAMESPACE)):
            for thing in self.api.list(API_VERSION, kind, namespace):
                spec = {key: value for key, value in thing["spec"].items() if key != "units"}
                words = {"spec": spec, "status": thing.get("status", {})}
                lines.append(f"{kind} {thing['metadata']['name']}: {json.dumps(words)}")
        return "\n".join(lines)

    def weight_in_force(self, slot: str) -> int | None:
        """What the gateway's data plane gives a slot; None while it follows no revision, or an older one."""
        route = self.api.find(GATEWAY_API, "HTTPRoute", f"{GROUP}-{OUTPUT}", NAMESPACE)
        if route is None:
            return None
        revision = int(route["metadata"]["annotations"]["kvpool.dev/route-revision"])
        if self.revision_in_force() != revision:
            return None
        backends = route["spec"]["rules"][0].get("backendRefs", [])
        named = f"{slot}-{OUTPUT}"
        return next((backend.get("weight", 1) for backend in backends if backend["name"] == named), 0)

    def revision_in_force(self) -> int | None:
        """The revision that the data plane itself answers with."""
        location = get(urlsplit(self.gateway.url).netloc, PROBE_PATH)[2]
        host = urlsplit(location).hostname or ""
        number = host.removeprefix("revision-").partition(".")[0]
        return int(number) if number.isdecimal() else None

    @contextmanager
    def requests(self) -> Iterator[Traffic]:
        """A steady stream of requests through the gateway; its results are there afterwards."""
        out = self.folder / f"load-{next(self._numbers)}.jsonl"
        traffic = Traffic(LoadProcess(self.gateway.url, out, requests_per_second=REQUESTS_PER_SECOND))
        traffic.process.start()
        try:
            yield traffic
        finally:
            traffic.sent = traffic.process.stop()


class Traffic:
    """A stream of requests; `sent` is filled when it has ended."""

    def __init__(self, process: LoadProcess) -> None:
        self.process = process
        self.sent: Sequence[SentRequest] = ()


def node_of(slot: JsonObject) -> str:
    """The node of a slot's one seat; empty before it is bound."""
    seats = slot["spec"].get("seats", [])
    return str(seats[0]["node"]) if seats else ""


def serves(slot: JsonObject) -> bool:
    """Whether the slot's status says Serving, under the epoch of its spec and at full weight."""
    status = slot.get("status", {})
    return (
        status.get("attached", {}).get("epoch") == slot["spec"].get("epoch")
        and status.get("weightAcknowledged") == 100
        and condition(slot, "Serving") == "True"
    )


def sample(text: str, series: str) -> float:
    """The value of one series in Prometheus text; 0 when it is not there."""
    found = (line.rpartition(" ") for line in text.splitlines() if line.startswith(f"{series} "))
    return next((float(value) for _, _, value in found), 0.0)


def condition(thing: JsonObject, kind: str) -> str:
    """The status of one condition; Unknown when it is not there."""
    found: Any = thing.get("status", {}).get("conditions", [])
    return next((str(entry["status"]) for entry in found if entry["type"] == kind), "Unknown")


def first_times(watched: Mapping[str, Callable[[], object]], deadline_seconds: float) -> dict[str, float]:
    """Poll until each of `watched` was true once; return when each first was (monotonic seconds)."""
    seen: dict[str, float] = {}

    def look() -> bool:
        for name, holds in watched.items():
            if name not in seen and holds():
                seen[name] = time.monotonic()
        return len(seen) == len(watched)

    try:
        wait_until(look, deadline_seconds, ", ".join(watched), poll_seconds=WATCH_SECONDS)
    except AssertionError as missed:
        raise AssertionError(f"{missed}; seen by then: {sorted(seen)}") from None
    return seen


def stays(holds: Callable[[], object], seconds: float, what: str) -> None:
    """Poll for `seconds` that something stays true. Raises AssertionError at the first time it is not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert holds(), f"{what}: not any more, {end - time.monotonic():.1f} s before the end"
        time.sleep(STAYS_POLL_SECONDS)


def get(address: str, path: str) -> tuple[int, str, str]:
    """GET without following redirects: status, body and Location. Raises OSError."""
    connection = http.client.HTTPConnection(address, timeout=HTTP_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace"), answer.getheader("Location", "")
    finally:
        connection.close()
