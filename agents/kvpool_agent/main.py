"""The command `kvpool-agent`: the only place where its parts are put together."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial

import structlog

from kvpool.rules.heartbeats import LOOP_LIMIT_SECONDS
from kvpool_agent import timing
from kvpool_agent.actions import ActionError
from kvpool_agent.adopt import adopt
from kvpool_agent.agent import Agent, NodeIdentity, Parts
from kvpool_agent.backends.base import Backend
from kvpool_agent.backends.file import FileBackend
from kvpool_agent.backends.tmpfs import TmpfsBackend, find_ability
from kvpool_agent.binder import Binder
from kvpool_agent.devices.base import Device, DeviceProvider
from kvpool_agent.devices.pod_resources import HeldDevices, PodResources
from kvpool_agent.devices.simulated import SimulatedDevices
from kvpool_agent.enrolment import Enrolment, EnrolmentOptions
from kvpool_agent.epochs import EpochGate
from kvpool_agent.front_door import FrontDoor
from kvpool_agent.heartbeats import Heartbeats
from kvpool_agent.journal import Journal
from kvpool_agent.lease import LeaseBook
from kvpool_agent.local_api import LocalApi
from kvpool_agent.metrics import health_route, metrics_route, ready_route
from kvpool_agent.peers import PeerWatch, lease_route
from kvpool_agent.places import EPOCH_FILE, LEASE_FILE, SEATS_FILE, Places, SecondAgentError
from kvpool_agent.retirement import Retirement
from kvpool_agent.seats import SeatBook
from kvpool_agent.settings import Settings, parse_arguments
from kvpool_agent.stream import OperatorStream
from kvpool_agent.units import UnitView
from kvpool_keeper import contract
from kvpool_keeper.answer import Responder
from kvpool_keeper.probe import LEASE_PATH

log = structlog.get_logger()

LEAVE_SECONDS = 2.0
CANCEL_AGAIN_SECONDS = 1.0
END_SECONDS = 6.0
"""From the signal to the end of the process, whatever still hangs."""


class NoDevices:
    """A node without accelerators that kvpool knows of."""

    trouble = ""

    def poll(self, now_seconds: float) -> tuple[Device, ...] | None:
        """Nothing ever changes."""
        return None


def make_binder(settings: Settings, places: Places, boot_id: str) -> tuple[Journal, Binder]:
    """Put the binding side together. Raises ActionError when --tmpfs asks for rights that are missing."""
    owner = (settings.keeper_uid, settings.keeper_gid)
    ability = find_ability(settings.tmpfs, places.trial)
    log.info("tmpfs", mounts=ability.mount, mpol=ability.mpol, noswap=ability.noswap)
    backends: tuple[Backend, ...] = (
        TmpfsBackend(
            ability,
            owner=owner,
            sysroot=settings.sysroot,
            units=places.units,
            shared_memory=settings.shared_memory,
        ),
        FileBackend(settings.file_path, places.units),
    )
    journal = Journal(places.journal, places.quarantine)
    return journal, Binder(places, journal, {backend.name: backend for backend in backends}, boot_id, owner)


async def live(
    settings: Settings,
    places: Places,
    boot_id: str,
    journal: Journal,
    binder: Binder,
    adopted: tuple[UnitView, ...],
) -> None:
    """Run until a signal comes. Raises OSError when an address cannot be listened on."""
    hearts = Heartbeats(LOOP_LIMIT_SECONDS)
    lease = LeaseBook(places.root / LEASE_FILE, settings.node_name, boot_id)
    lease.load()
    gate = EpochGate(places.root / EPOCH_FILE)
    gate.load()
    door = FrontDoor(settings.local_socket, timing.MOST_ENGINES)
    local = LocalApi(SeatBook(holders=None if settings.devices else {}), door, places.root / SEATS_FILE)
    devices, pod_resources = _provider(settings)
    parts = Parts(
        identity=NodeIdentity(
            settings.node_name,
            settings.pod_uid,
            boot_id,
            await asyncio.to_thread(places.next_incarnation),
            f"{settings.host_address}:{settings.peer_port}",
        ),
        binder=binder,
        journal=journal,
        lease=lease,
        gate=gate,
        peers=PeerWatch(settings.node_name, settings.kubelet_port),
        local=local,
        devices=devices,
        pod_resources=pod_resources,
        hearts=hearts,
        retirement=Retirement(places, gate, lease, local),
    )
    agent = Agent(parts, adopted)
    stream = _make_stream(settings, places, agent, partial(hearts.beat, "stream"))
    local.changed = stream.changed
    peer_side = Responder({LEASE_PATH: lease_route(settings.node_name, boot_id, lease.own_word)})
    await peer_side.start(settings.host_address, settings.peer_port)
    own_side = Responder(
        {
            "/metrics": metrics_route(agent.reading),
            "/healthz": health_route(hearts),
            "/readyz": ready_route(lambda: agent.greeted),
        }
    )
    await own_side.start(settings.host_address, settings.metrics_port)
    await local.start()
    try:
        await _until_signal(agent, stream)
    finally:
        await local.stop()
        await peer_side.stop()
        await own_side.stop()
        if pod_resources is not None:
            await pod_resources.close()


async def _until_signal(agent: Agent, stream: OperatorStream) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    life = asyncio.create_task(agent.run(stream))
    end = asyncio.create_task(ended.wait())
    await asyncio.wait({life, end}, return_when=asyncio.FIRST_COMPLETED)
    end.cancel()
    if not life.done():
        end_in_any_case()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await stream.leave()
    while not life.done():
        life.cancel()
        await asyncio.wait({life}, timeout=CANCEL_AGAIN_SECONDS)
    with contextlib.suppress(asyncio.CancelledError):
        await life


def end_in_any_case(after_seconds: float = END_SECONDS) -> None:
    """End the process although a thread hangs in the kernel (a disk, a resolver), which Python waits for.

    Whatever is cut short is in the journal, as after a SIGKILL.
    """
    last_resort = threading.Timer(after_seconds, os._exit, (0,))
    last_resort.daemon = True
    last_resort.start()


def _make_stream(
    settings: Settings, places: Places, agent: Agent, beat: Callable[[], None]
) -> OperatorStream:
    enrolment = Enrolment(
        places.identity,
        EnrolmentOptions(
            node_name=settings.node_name,
            address=settings.enroll,
            token_file=settings.token_file,
            ca_file=settings.ca_file,
            server_name=settings.server_name,
        ),
        beat,
    )
    enrolment.load()
    return OperatorStream(settings.operator, settings.server_name, enrolment, agent, beat)


def _provider(settings: Settings) -> tuple[DeviceProvider, PodResources | None]:
    """The devices, and who is to be asked which pods hold them."""
    if settings.devices is None:
        return NoDevices(), None
    devices = SimulatedDevices(settings.devices)
    if settings.pod_resources is None:
        return devices, None
    resources = frozenset(settings.device_resources)
    pod_resources = PodResources(settings.pod_resources, resources, settings.pod_name)
    return HeldDevices(devices, pod_resources), pod_resources


def main() -> None:
    """Start here."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(),
        ]
    )
    # Until the loops run: the first process of a container ignores a signal that it has no handler for.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    settings = parse_arguments()
    places = Places(settings.state_dir.resolve())
    boot_id = contract.boot_id()
    try:
        places.make()
        places.lock()
        journal, binder = make_binder(settings, places, boot_id)
        adopted = adopt(journal, binder)
        asyncio.run(live(settings, places, boot_id, journal, binder, adopted))
    except (ActionError, SecondAgentError, OSError) as error:
        sys.exit(f"kvpool-agent: {error}")


if __name__ == "__main__":
    main()
