"""A device plugin of kubelet that hands out simulated accelerators as an extended resource.

Run as `python -m demo.neighbours.device_plugin --help`, as root, one on each node. It registers at kubelet,
and again whenever kubelet was started anew: kubelet then empties the folder of the plugins' sockets.
The devices are those of the file that the agent's simulated provider reads. One with a fault that is fatal
is Unhealthy: kubelet gives it to no container any more, and takes it from none.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import grpc

from demo.neighbours.accelerators import BROKEN
from demo.neighbours.device_plugin_service import DevicePlugin
from demo.neighbours.kubelet import deviceplugin_pb2 as api
from demo.neighbours.kubelet import deviceplugin_pb2_grpc as api_grpc
from kvpool_agent.devices.simulated import SimulatedDevices

VERSION = "v1beta1"
LOOK_SECONDS = 0.25
REGISTER_SECONDS = 5.0
UNWATCHED_SECONDS = 10.0
"""A kubelet that does not watch the devices so long after it was told of them is told again."""
STOP_SECONDS = 1.0

Stamp = tuple[int, int]


class Registered:
    """Keeps the plugin served on its socket, and known to the kubelet that runs now."""

    def __init__(self, folder: Path, resource: str, plugin: DevicePlugin) -> None:
        self._kubelet = folder / "kubelet.sock"
        self._socket = folder / f"{resource.replace('/', '_')}.sock"
        self._resource = resource
        self._plugin = plugin
        self._server: grpc.aio.Server | None = None
        self._known_to: Stamp | None = None
        self._told_at_seconds = 0.0
        self._trouble = ""

    async def look(self) -> None:
        """Register where that is needed. Trouble is said once, and it is tried again at the next look."""
        stamp = _stamp(self._kubelet)
        if stamp is None:
            self._say(f"{self._kubelet} is not there; waiting for kubelet")
        elif self._is_needed(stamp):
            await self.stop()
            try:
                await self._serve()
                await self._register()
            except (grpc.aio.AioRpcError, RuntimeError) as error:
                why = error.details() if isinstance(error, grpc.aio.AioRpcError) else error
                self._say(f"not registered at {self._kubelet}: {why}")
                return
            self._known_to, self._told_at_seconds = stamp, time.monotonic()
            self._trouble = ""
            print(f"device plugin: registered {self._resource} at {self._kubelet}", flush=True)

    async def stop(self) -> None:
        """End the server; its socket goes with it."""
        server, self._server, self._known_to = self._server, None, None
        if server is not None:
            await server.stop(STOP_SECONDS)

    def _is_needed(self, stamp: Stamp) -> bool:
        forgotten = time.monotonic() - self._told_at_seconds > UNWATCHED_SECONDS
        return (
            stamp != self._known_to
            or not self._socket.exists()
            or (forgotten and not self._plugin.is_watched)
        )

    async def _serve(self) -> None:
        """Serve on a fresh socket. Raises RuntimeError when it cannot be bound."""
        self._socket.unlink(missing_ok=True)
        self._server = grpc.aio.server()
        api_grpc.add_DevicePluginServicer_to_server(self._plugin, self._server)
        self._server.add_insecure_port(f"unix:{self._socket}")
        await self._server.start()

    async def _register(self) -> None:
        """Tell kubelet of the plugin. Raises AioRpcError."""
        async with grpc.aio.insecure_channel(f"unix:{self._kubelet}") as channel:
            request = api.RegisterRequest(
                version=VERSION,
                endpoint=self._socket.name,
                resource_name=self._resource,
                options=self._plugin.options,
            )
            await api_grpc.RegistrationStub(channel).Register(request, timeout=REGISTER_SECONDS)

    def _say(self, line: str) -> None:
        if line != self._trouble:
            print(f"device plugin: {line}", flush=True)
        self._trouble = line


def _stamp(path: Path) -> Stamp | None:
    """What tells one socket file from the next of the same name; None when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_ctime_ns


async def run(file: Path, folder: Path, resource: str) -> None:
    """Hand out the devices of `file` until cancelled; sockets are in `folder`.

    A file that cannot be read changes nothing, and before it can be read nothing is registered: a kubelet
    that is told of no devices at its start would refuse pods that hold some.
    """
    devices = SimulatedDevices(file)
    plugin = DevicePlugin()
    registered = Registered(folder, resource, plugin)
    try:
        while True:
            found = devices.poll(time.time())
            if found is not None and not devices.trouble:
                broken = {
                    device.id for device in found if any(f.evidence_class in BROKEN for f in device.faults)
                }
                plugin.show({device.id: device.id not in broken for device in found})
            if plugin.has_devices:
                await registered.look()
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        await registered.stop()


async def _until_signal(options: argparse.Namespace) -> None:
    life = asyncio.create_task(run(options.devices_file, options.folder, options.resource))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, life.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await life


def main(arguments: Sequence[str] | None = None) -> None:
    """Start here."""
    parser = argparse.ArgumentParser(prog="python -m demo.neighbours.device_plugin", description=__doc__)
    parser.add_argument(
        "--devices-file", type=Path, required=True, help="the simulated accelerators' state; waited for"
    )
    parser.add_argument(
        "--resource", default="kvpool.dev/sim-accelerator", help="name of the extended resource"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("/var/lib/kubelet/device-plugins"), help="where kubelet.sock is"
    )
    options = parser.parse_args(arguments)
    asyncio.run(_until_signal(options))


if __name__ == "__main__":
    main()
