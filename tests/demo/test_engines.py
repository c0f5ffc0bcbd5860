"""Engine Pods get the arguments that the engine's own command line takes."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from demo.accelerators import FILE, Accelerators, device_id
from demo.engines import ENGINES, EnginePlace
from demo.neighbours.engine_options import parse_options
from demo.process_form.engine_pod import STATE_FOLDER, engine_pod
from devcluster.controlplane import ControlPlane
from devcluster.hosts import SimulatedHost
from devcluster.podprocess import PodProcesses
from tests.harness.waiting import wait_until


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_an_engines_arguments_are_understood(engine: EnginePlace) -> None:
    container = engine_pod(engine, "10.0.0.1:50051")["spec"]["containers"][0]
    options = parse_options(container["args"], "")
    assert options.standby == (engine.role == "standby")
    assert options.devices == (device_id(engine.device),)
    assert bool(options.segment_bytes) == (engine.role != "standby")


def test_engines_of_one_host_have_different_ports_and_devices() -> None:
    places = [(engine.node, engine.port) for engine in ENGINES]
    assert len(set(places)) == len(places)
    assert len({(engine.node, engine.device) for engine in ENGINES}) == len(ENGINES)


def test_a_standby_pod_runs_as_a_process_of_its_host(
    control_plane: ControlPlane, add_host: Callable[..., SimulatedHost]
) -> None:
    engine = next(engine for engine in ENGINES if engine.role == "standby")
    processes = PodProcesses(control_plane)
    host = add_host(control_plane, f"node-{secrets.token_hex(4)}", runner=processes)
    Accelerators(host.files.outer(f"{STATE_FOLDER}/{FILE}"), host.name, 2)
    pod = engine_pod(engine, "10.0.0.1:50051")
    namespace = f"engines-{secrets.token_hex(4)}"
    control_plane.create_namespace(namespace)
    pod["metadata"]["namespace"] = namespace
    process = host.process_of(host.add_pod(pod))
    assert process is not None
    process.wait_for_line(f"{engine.name}: listening on {host.address}:{engine.port}, standby", 20)
    wait_until(lambda: "local API: UNAVAILABLE" in process.text(), 20, "it to look for the agent")
