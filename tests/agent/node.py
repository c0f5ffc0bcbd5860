"""One simulated node of a test: an agent process, its keepers, and the folders they share."""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
import socket
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from devcluster.ports import free_ports
from devcluster.process import ManagedProcess
from kvpool.wire.v1alpha1 import agent_pb2 as wire
from kvpool_agent import actions
from kvpool_agent.places import Places
from kvpool_keeper.contract import STATUS_FILE, KeeperStatus, read_file
from tests.agent.scripted_operator import SERVER_NAME, ScriptedOperator, write
from tests.harness.waiting import wait_until

TOOLS = Path(sys.executable).parent
MIB = 1 << 20


@dataclass
class TestNode:
    """Starts and kills what runs on a node. `close` leaves nothing mounted."""

    __test__ = False
    folder: Path
    operator: ScriptedOperator
    name: str = "node-1"
    tmpfs: str = "auto"
    address: str = "127.0.0.1"
    flags: tuple[str, ...] = ()
    keepers: dict[str, ManagedProcess] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = Places(self.folder / "state")
        self.ssd = self.folder / "ssd"
        self.ssd.mkdir(parents=True)
        # Unix sockets have short names; the test's own folder may be a long one.
        self.short = Path(tempfile.mkdtemp(prefix="kvpool-"))
        self.shared_memory = Path(tempfile.mkdtemp(prefix="kvpool-test-", dir="/dev/shm"))
        self.socket = self.short / "local.sock"
        self.devices_file = self.folder / "devices.json"
        self.token = write(self.folder / "token", "a-token")
        self.authority = write(self.folder / "ca.pem", self.operator.authority.pem.decode())
        self.peer_port, self.metrics_port = free_ports(2, self.address)
        self.agent = ManagedProcess(f"agent of {self.name}", self._agent_argv(), self.folder / "agent.log")

    def start_agent(self) -> ManagedProcess:
        self.agent.argv = [str(part) for part in self._agent_argv()]
        return self.agent.start()

    def restart_agent(self) -> None:
        """Kill it as the kernel would, and start it again."""
        self.agent.kill()
        self.start_agent()

    def keeper_of(self, unit: wire.Unit) -> ManagedProcess:
        """Start (or start again) the keeper of one unit."""
        directory = self.places.unit(unit.name, unit.generation)
        keeper = ManagedProcess(
            f"keeper of {unit.name}",
            [
                TOOLS / "kvpool-keeper",
                "--unit-dir",
                str(directory),
                "--address",
                self.address,
                "--drain-seconds",
                "10",
            ],
            self.folder / f"keeper-{directory.name}.log",
        )
        self.keepers[directory.name] = keeper
        return keeper.start()

    def keeper_status(self, unit: wire.Unit) -> KeeperStatus | None:
        return read_file(self.places.unit(unit.name, unit.generation) / STATUS_FILE, KeeperStatus)

    def break_device(self, device: str, code: str = "79", evidence_class: str = "Fatal") -> None:
        """Edit the devices' file as a person does."""
        content = json.loads(self.devices_file.read_text())
        for entry in content["devices"]:
            if entry["id"] == device:
                entry["faults"] = [{"source": "driver", "code": code, "class": evidence_class}]
        write(self.devices_file, json.dumps(content))

    def get(self, path: str) -> tuple[int, str]:
        """Ask the agent's own HTTP port."""
        url = f"http://{self.address}:{self.metrics_port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    @contextlib.contextmanager
    def half_open(self, port: int) -> Iterator[None]:
        """A client of one of the agent's ports that began a request and says no more."""
        with socket.create_connection((self.address, port), 5) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n")
            yield

    def wait_until_connected(self) -> None:
        count = len(self.operator.heard.renews)

        def renewed() -> bool:
            assert len(self.operator.heard.renews) > count, self.agent.tail()
            return True

        wait_until(renewed, 15, "a Renew", tolerate=(AssertionError,))

    def mounts(self) -> tuple[str, ...]:
        """Labels of what is mounted below the state directory."""
        return tuple(
            m.label for m in actions.mounts() if Path(m.path).is_relative_to(self.places.units.resolve())
        )

    def close(self) -> None:
        self.agent.kill()
        for keeper in self.keepers.values():
            keeper.kill()
        for mount in reversed(actions.mounts()):
            if Path(mount.path).is_relative_to(self.folder.resolve()):
                # The kernel lets go of the files of a killed keeper a moment after it was reaped.
                wait_until(partial(_unmounted, Path(mount.path)), 10, f"{mount.path} unmounted")
        shutil.rmtree(self.shared_memory)
        shutil.rmtree(self.short)

    def unit(self, tier: str = "dram", **changes: object) -> wire.Unit:
        """A unit of 8 MiB; of this node."""
        fields: dict[str, object] = {
            "name": f"inference.chat.{tier}.n0",
            "pool": "inference/chat",
            "tier": tier.upper(),
            "size_bytes": 8 * MIB,
            "numa_node": 0 if tier == "dram" else -1,
            "backend": "tmpfs" if tier == "dram" else "file",
            "path": "" if tier == "dram" else str(self.ssd),
            "generation": 1,
            "adopt": True,
        }
        return wire.Unit(**{**fields, **changes})  # type: ignore[arg-type] # the fields are the message's own

    def _agent_argv(self) -> list[str | Path]:
        return [
            TOOLS / "kvpool-agent",
            *("--node-name", self.name, "--pod-uid", f"uid-of-{self.name}"),
            *("--host-address", self.address, "--state-dir", str(self.places.root)),
            *("--operator", f"127.0.0.1:{self.operator.agent_port}"),
            *("--enroll", f"127.0.0.1:{self.operator.enrol_port}", "--server-name", SERVER_NAME),
            *("--token-file", str(self.token), "--ca-file", str(self.authority)),
            *("--local-socket", str(self.socket), "--tmpfs", self.tmpfs),
            *("--shared-memory", str(self.shared_memory)),
            *("--peer-port", str(self.peer_port), "--metrics-port", str(self.metrics_port)),
            *("--devices", f"simulated:{self.devices_file}", "--file-path", str(self.ssd)),
            *self.flags,
        ]


def _unmounted(path: Path) -> bool:
    try:
        actions.unmount(path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True
