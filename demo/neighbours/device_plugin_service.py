"""What the simulated device plugin answers to kubelet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping

import grpc

from demo.neighbours.kubelet import deviceplugin_pb2 as api
from demo.neighbours.kubelet import deviceplugin_pb2_grpc as api_grpc

DEVICES = "KVPOOL_SIM_DEVICES"
"""In a container that was given devices: their ids, separated by commas."""

Context = grpc.aio.ServicerContext[object, object]


class DevicePlugin(api_grpc.DevicePluginServicer):
    """Hands out the devices it was last shown."""

    options = api.DevicePluginOptions(pre_start_required=False, get_preferred_allocation_available=True)

    def __init__(self) -> None:
        self._health: Mapping[str, bool] | None = None
        self._changed = asyncio.Event()
        self._watchers = 0

    @property
    def has_devices(self) -> bool:
        """Whether it was ever shown devices, be it none."""
        return self._health is not None

    @property
    def is_watched(self) -> bool:
        """Whether kubelet watches the devices."""
        return self._watchers > 0

    def show(self, health: Mapping[str, bool]) -> None:
        """Take the devices, each with whether it works, and tell kubelet when something changed."""
        if health != self._health:
            self._health = dict(health)
            self._changed.set()
            self._changed = asyncio.Event()

    async def GetDevicePluginOptions(  # noqa: N802 - the API's own name
        self, request: api.Empty, context: Context
    ) -> api.DevicePluginOptions:
        """Ask for GetPreferredAllocation alone."""
        return self.options

    async def ListAndWatch(  # noqa: N802 - the API's own name
        self, request: api.Empty, context: Context
    ) -> AsyncIterator[api.ListAndWatchResponse]:
        """All devices, and again after every change."""
        self._watchers += 1
        try:
            while True:
                changed = self._changed
                yield api.ListAndWatchResponse(
                    devices=[
                        api.Device(ID=device, health="Healthy" if works else "Unhealthy")
                        for device, works in sorted((self._health or {}).items())
                    ]
                )
                await changed.wait()
        finally:
            self._watchers -= 1

    async def GetPreferredAllocation(  # noqa: N802 - the API's own name
        self, request: api.PreferredAllocationRequest, context: Context
    ) -> api.PreferredAllocationResponse:
        """The first devices by name, so that it can be foreseen which they are."""
        return api.PreferredAllocationResponse(
            container_responses=[
                api.ContainerPreferredAllocationResponse(
                    deviceIDs=_preferred(
                        wanted.available_deviceIDs, wanted.must_include_deviceIDs, wanted.allocation_size
                    )
                )
                for wanted in request.container_requests
            ]
        )

    async def Allocate(  # noqa: N802 - the API's own name
        self, request: api.AllocateRequest, context: Context
    ) -> api.AllocateResponse:
        """Tell containers their devices."""
        known = self._health or {}
        for wanted in request.container_requests:
            for device in wanted.devices_ids:
                if device not in known:
                    await context.abort(grpc.StatusCode.NOT_FOUND, f"there is no device {device!r}")
        return api.AllocateResponse(
            container_responses=[
                api.ContainerAllocateResponse(envs={DEVICES: ",".join(sorted(wanted.devices_ids))})
                for wanted in request.container_requests
            ]
        )

    async def PreStartContainer(  # noqa: N802 - the API's own name
        self, request: api.PreStartContainerRequest, context: Context
    ) -> api.PreStartContainerResponse:
        """Nothing is to be done."""
        return api.PreStartContainerResponse()


def _preferred(available: Iterable[str], included: Iterable[str], count: int) -> list[str]:
    """Return `count` devices: those that must be among them, then others by name."""
    chosen = sorted(included)
    return chosen + sorted(set(available) - set(chosen))[: max(0, count - len(chosen))]
