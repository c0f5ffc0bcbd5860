"""Simulated accelerators as extended resources: the plugin's process, and kubelet's side of its sockets."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest

from demo.neighbours.accelerators import Accelerator, AcceleratorFile
from demo.neighbours.engine_options import parse_options
from demo.neighbours.kubelet import deviceplugin_pb2 as api
from devcluster.process import ManagedProcess
from kvpool.api.supernode import EvidenceClass
from tests.harness.waiting import wait_until
from tests.neighbours.registering_kubelet import RegisteringKubelet

RESOURCE = "kvpool.dev/sim-accelerator"
FIRST, SECOND = "0000:01:00.0", "0000:02:00.0"
HEALTHY = {FIRST: "Healthy", SECOND: "Healthy"}
DEADLINE_SECONDS = 20.0


@dataclass
class Plugin:
    """A running plugin of two devices."""

    process: ManagedProcess
    file: AcceleratorFile
    kubelet: RegisteringKubelet

    def wait_for(self, devices: dict[str, str], what: str) -> None:
        def known() -> bool:
            assert self.kubelet.devices == devices, f"{self.kubelet.devices}\n{self.process.tail()}"
            return True

        wait_until(known, DEADLINE_SECONDS, f"{what}: {devices}", tolerate=(AssertionError,))


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[Plugin]:
    """The plugin, and a kubelet that is not started yet."""
    file = AcceleratorFile(tmp_path / "devices.json")
    file.create([Accelerator(FIRST, "GPU-1"), Accelerator(SECOND, "GPU-2")])
    # Unix sockets have short names; the test's own folder may be a long one.
    with tempfile.TemporaryDirectory(prefix="kvpool-") as folder:
        kubelet = RegisteringKubelet(Path(folder))
        argv = [
            *(sys.executable, "-m", "demo.neighbours.device_plugin"),
            *("--devices-file", str(file.path), "--resource", RESOURCE, "--folder", folder),
        ]
        process = ManagedProcess("device plugin", argv, tmp_path / "plugin.log").start()
        yield Plugin(process, file, kubelet)
        process.kill()
        kubelet.stop()


def test_the_plugin_registers_and_shows_the_devices_of_its_file(plugin: Plugin) -> None:
    plugin.kubelet.start()
    plugin.wait_for(HEALTHY, "both devices")
    (request,) = plugin.kubelet.requests
    assert (request.version, request.resource_name) == ("v1beta1", RESOURCE)
    options = plugin.kubelet.plugin.GetDevicePluginOptions(api.Empty())
    assert options == request.options
    assert not options.pre_start_required


def test_a_device_is_unhealthy_while_it_has_a_fatal_fault(plugin: Plugin) -> None:
    plugin.kubelet.start()
    plugin.wait_for(HEALTHY, "both devices")
    plugin.file.add_fault(FIRST, source="driver", code="13", evidence_class=EvidenceClass.SOFT)
    plugin.file.add_fault(SECOND, source="driver", code="79", evidence_class=EvidenceClass.FATAL)
    plugin.wait_for({FIRST: "Healthy", SECOND: "Unhealthy"}, "the fault")
    plugin.file.clear_faults(SECOND)
    plugin.wait_for(HEALTHY, "the end of the fault")


def test_nothing_is_registered_before_the_devices_are_known(plugin: Plugin) -> None:
    away = plugin.file.path.rename(plugin.file.path.with_name("away.json"))
    plugin.process.kill()
    plugin.process.start()
    plugin.kubelet.start()
    wait_until(lambda: "cannot be asked about" in plugin.process.tail(), DEADLINE_SECONDS, "the trouble")
    assert plugin.kubelet.requests == []
    away.rename(plugin.file.path)
    plugin.wait_for(HEALTHY, "both devices")


def test_a_file_that_cannot_be_read_breaks_no_device(plugin: Plugin) -> None:
    plugin.kubelet.start()
    plugin.wait_for(HEALTHY, "both devices")
    plugin.file.add_fault(FIRST, source="driver", code="79", evidence_class=EvidenceClass.FATAL)
    plugin.wait_for({FIRST: "Unhealthy", SECOND: "Healthy"}, "the fault")
    plugin.file.path.write_text("{")
    wait_until(lambda: "cannot be asked about" in plugin.process.tail(), DEADLINE_SECONDS, "the trouble")
    assert plugin.kubelet.devices == {FIRST: "Unhealthy", SECOND: "Healthy"}


def test_containers_are_told_their_devices(plugin: Plugin) -> None:
    plugin.kubelet.start()
    plugin.wait_for(HEALTHY, "both devices")
    stub = plugin.kubelet.plugin
    wanted = [api.ContainerAllocateRequest(devices_ids=ids) for ids in ([SECOND, FIRST], [FIRST])]
    both, one = stub.Allocate(api.AllocateRequest(container_requests=wanted)).container_responses
    assert both.envs == {"KVPOOL_SIM_DEVICES": f"{FIRST},{SECOND}"}
    assert one.envs == {"KVPOOL_SIM_DEVICES": FIRST}
    assert stub.PreStartContainer(api.PreStartContainerRequest()) == api.PreStartContainerResponse()
    gone = api.AllocateRequest(
        container_requests=[api.ContainerAllocateRequest(devices_ids=["0000:09:00.0"])]
    )
    with pytest.raises(grpc.RpcError, match="there is no device"):
        stub.Allocate(gone)


def test_the_first_devices_by_name_are_preferred(plugin: Plugin) -> None:
    plugin.kubelet.start()
    plugin.wait_for(HEALTHY, "both devices")
    cases = [("cab", "", 2, "ab"), ("cab", "c", 2, "ca"), ("cab", "ca", 2, "ac"), ("a", "", 2, "a")]
    wanted = [
        api.ContainerPreferredAllocationRequest(
            available_deviceIDs=available, must_include_deviceIDs=included, allocation_size=size
        )
        for available, included, size, _ in cases
    ]
    request = api.PreferredAllocationRequest(container_requests=wanted)
    answers = plugin.kubelet.plugin.GetPreferredAllocation(request).container_responses
    assert ["".join(answer.deviceIDs) for answer in answers] == [chosen for *_, chosen in cases]


def test_a_kubelet_that_starts_anew_is_told_again(plugin: Plugin) -> None:
    for _ in range(2):
        plugin.kubelet.start()
        plugin.wait_for(HEALTHY, "both devices")
        plugin.kubelet.stop()
    assert len(plugin.kubelet.requests) == 2


def test_a_kubelet_that_refuses_is_asked_until_it_takes_the_plugin(plugin: Plugin) -> None:
    plugin.kubelet.refuses = True
    plugin.kubelet.start()
    wait_until(lambda: len(plugin.kubelet.requests) > 1, DEADLINE_SECONDS, "another try")
    assert plugin.process.tail().count("the test wants no plugin") == 1, "said once"
    plugin.kubelet.refuses = False
    plugin.wait_for(HEALTHY, "both devices")


def test_a_kubelet_that_never_watches_is_told_again(plugin: Plugin) -> None:
    plugin.kubelet.watches = False
    plugin.kubelet.start()
    wait_until(lambda: plugin.kubelet.requests, DEADLINE_SECONDS, "the first registration")
    plugin.kubelet.watches = True
    plugin.wait_for(HEALTHY, "both devices")
    assert len(plugin.kubelet.requests) == 2


def test_a_told_plugin_ends_in_order_and_leaves_no_socket(plugin: Plugin) -> None:
    plugin.kubelet.start()
    plugin.wait_for(HEALTHY, "both devices")
    began = time.monotonic()
    assert plugin.process.terminate() == 0
    assert time.monotonic() - began < 10
    assert not (plugin.kubelet.folder / plugin.kubelet.requests[0].endpoint).exists()


def test_an_engine_takes_the_devices_that_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--name=engine-0", "--address=127.0.0.1"]
    monkeypatch.setenv("KVPOOL_SIM_DEVICES", f"{FIRST},{SECOND}")
    assert parse_options(arguments, "").devices == (FIRST, SECOND)
    assert parse_options([*arguments, f"--devices={FIRST}"], "").devices == (FIRST,)
    monkeypatch.delenv("KVPOOL_SIM_DEVICES")
    assert parse_options(arguments, "").devices == ()
