"""A real Mooncake master for the tests that need one, and engines that end with their test."""

from __future__ import annotations

import ctypes.util
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.neighbours.engine_options import EngineOptions
from demo.neighbours.engine_process import EngineProcess
from demo.neighbours.mooncake import MooncakeMaster, master_binary
from devcluster import sandbox
from devcluster.ports import free_port, free_ports

LOOPBACK = "127.0.0.1"
StartEngine = Callable[..., EngineProcess]


def require_mooncake() -> None:
    """Skip, with what to install, where Mooncake cannot run."""
    try:
        master_binary()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    if ctypes.util.find_library("ibverbs") is None:
        pytest.skip("Mooncake needs the shared library libibverbs: install Debian's libibverbs1")


@pytest.fixture(scope="session")
def mooncake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MooncakeMaster]:
    """The master that this worker's tests share; every test leaves it without segments."""
    require_mooncake()
    rpc_port, admin_port = free_ports(2)
    log = tmp_path_factory.mktemp("mooncake") / "master.log"
    with MooncakeMaster(address=LOOPBACK, log_path=log, rpc_port=rpc_port, admin_port=admin_port) as master:
        yield master


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[StartEngine]:
    """Starts engines with the given options, on a free port, and ends them in order after the test."""
    started: list[EngineProcess] = []

    def start(**options: Any) -> EngineProcess:  # noqa: ANN401 - the fields of EngineOptions
        options = {"name": f"engine-{len(started)}", "address": LOOPBACK, **options}
        options.setdefault("port", free_port(options["address"]))
        engine = EngineProcess(EngineOptions(**options), tmp_path)
        started.append(engine)
        return engine.start()

    yield start
    for engine in started:
        engine.process.terminate()


@pytest.fixture(scope="session")
def own_address() -> str:
    """An address of this machine that is not loopback, as EndpointSlices demand."""
    if sandbox.inside():
        return sandbox.OWN_ADDRESS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # a documentation address; nothing is sent by UDP's connect
            address: str = probe.getsockname()[0]
        except OSError as error:
            pytest.skip(
                f"EndpointSlices refuse loopback, and this machine has no other IPv4 address ({error})"
            )
    return address
