"""kubelet's side of the device plugin API, served by a test: it registers plugins and watches devices."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from demo.neighbours.kubelet import deviceplugin_pb2 as api
from demo.neighbours.kubelet import deviceplugin_pb2_grpc as api_grpc


class RegisteringKubelet(api_grpc.RegistrationServicer):
    """As kubelet does, it empties the folder when it starts, and dials back whoever registers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[api.RegisterRequest] = []
        self.devices: dict[str, str] = {}
        """Health by device, as last told."""
        self.refuses = False
        self.watches = True
        self._server: grpc.Server | None = None
        self._channel: grpc.Channel | None = None

    @property
    def plugin(self) -> api_grpc.DevicePluginStub:
        """The plugin that registered last."""
        assert self._channel is not None
        return api_grpc.DevicePluginStub(self._channel)

    def Register(  # noqa: N802 - the API's own name
        self, request: api.RegisterRequest, context: grpc.ServicerContext
    ) -> api.Empty:
        """Take a plugin and begin to watch it."""
        self.requests.append(request)
        if self.refuses:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the test wants no plugin")
        self._hang_up()
        self._channel = grpc.insecure_channel(f"unix:{self.folder / request.endpoint}")
        if self.watches:
            threading.Thread(target=self._watch, args=(self.plugin,), daemon=True).start()
        return api.Empty()

    def start(self) -> None:
        for left in self.folder.glob("*.sock"):
            left.unlink()
        self.devices.clear()
        self._server = grpc.server(ThreadPoolExecutor(2))
        api_grpc.add_RegistrationServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{self.folder / 'kubelet.sock'}")
        self._server.start()

    def stop(self) -> None:
        self._hang_up()
        if self._server is not None:
            self._server.stop(0).wait(5)
            self._server = None

    def _hang_up(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _watch(self, plugin: api_grpc.DevicePluginStub) -> None:
        with contextlib.suppress(grpc.RpcError, ValueError):  # the plugin or the test ended
            for answer in plugin.ListAndWatch(api.Empty()):
                self.devices = {device.ID: device.health for device in answer.devices}
