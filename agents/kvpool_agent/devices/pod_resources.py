"""Who holds the accelerators: kubelet's PodResources API, version v1, which names pods but gives no UID.

Source: kubernetes.io, "Device Plugins", monitoring device plugin resources. kubelet serves it on a Unix
socket (by default /var/lib/kubelet/pod-resources/kubelet.sock) and answers at most 100 calls a second.

What a container was given stays its own for its life, so a device that kubelet last gave to a pod is held by
that pod while kubelet is silent. A device that was free when kubelet fell silent may be anybody's since.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path

import grpc
import structlog

from kvpool_agent.devices.base import Device, DeviceProvider
from kvpool_agent.kubelet import podresources_pb2, podresources_pb2_grpc
from kvpool_agent.timing import (
    POD_RESOURCES_ANSWER_SECONDS,
    POD_RESOURCES_RETRY_MOST_SECONDS,
    POD_RESOURCES_SECONDS,
)

log = structlog.get_logger()

MOST_PODS_OF_A_DEVICE = 8
LONGEST_POD = 507
_CHANNEL_OPTIONS = (("grpc.max_receive_message_length", 16 << 20),)


class PodResourcesError(Exception):
    """kubelet's answer cannot be believed; the message says why."""


class PodResources:
    """kubelet's last whole answer. `look` is called again and again by one loop."""

    def __init__(self, socket: Path, resources: frozenset[str], own_pod: str) -> None:
        """`resources` are extended resources; `own_pod` is this agent's, as namespace/name."""
        self._socket = socket
        self._resources = resources
        self._own_pod = own_pod
        self._channel: grpc.aio.Channel | None = None
        self._not_before_seconds = 0.0
        self._pause_seconds = POD_RESOURCES_SECONDS
        self.holders: Mapping[str, tuple[str, ...]] = {}
        """Device to the pods that hold it (namespace/name), sorted; kept while kubelet is silent."""
        self.trouble = "kubelet was not asked yet"
        """Why kubelet's word is not to be had now; empty when it is."""
        self.said_at_seconds: float | None = None
        """When kubelet last gave an answer (wall clock)."""

    async def look(self) -> None:
        """Ask kubelet, unless it failed a moment ago. Never raises but CancelledError."""
        if time.monotonic() < self._not_before_seconds:
            return
        asked_at_seconds = time.time()
        try:
            self.holders = self._read(await self._ask())
        except (grpc.aio.AioRpcError, PodResourcesError) as error:
            why = (
                f"{error.code().name} {error.details()}" if isinstance(error, grpc.aio.AioRpcError) else error
            )
            await self._failed(f"{self._socket}: {why}")
            return
        if self.trouble:
            log.info("kubelet says who holds devices", socket=str(self._socket))
        self.trouble, self.said_at_seconds = "", asked_at_seconds
        self._pause_seconds = POD_RESOURCES_SECONDS

    async def close(self) -> None:
        """Hang up."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _ask(self) -> podresources_pb2.ListPodResourcesResponse:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(f"unix:{self._socket}", _CHANNEL_OPTIONS)
        stub = podresources_pb2_grpc.PodResourcesListerStub(self._channel)
        request = podresources_pb2.ListPodResourcesRequest()
        return await stub.List(request, timeout=POD_RESOURCES_ANSWER_SECONDS)

    async def _failed(self, trouble: str) -> None:
        """Name the trouble once, ask less often, and dial anew: a kubelet that restarts has a new socket."""
        if trouble != self.trouble:
            log.warning("kubelet does not say who holds devices", trouble=trouble)
        self.trouble = trouble
        self._not_before_seconds = time.monotonic() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, POD_RESOURCES_RETRY_MOST_SECONDS)
        await self.close()

    def _read(self, answer: podresources_pb2.ListPodResourcesResponse) -> Mapping[str, tuple[str, ...]]:
        """Return the pods of each device. Raises PodResourcesError.

        A kubelet that has just started lists no pods before it has heard of them from the API server, this
        agent's own included; then devices would look free that are not.
        """
        found: dict[str, set[str]] = {}
        listed = set()
        for pod in answer.pod_resources:
            name = f"{pod.namespace}/{pod.name}"
            if len(name) > LONGEST_POD or not name.isprintable() or not (pod.namespace and pod.name):
                raise PodResourcesError(f"{name[:64]!r} is not the name of a pod")
            listed.add(name)
            for container in pod.containers:
                for devices in container.devices:
                    if devices.resource_name in self._resources:
                        for device in devices.device_ids:
                            found.setdefault(device, set()).add(name)
        if self._own_pod not in listed:
            raise PodResourcesError(f"lists {len(listed)} pods, but not {self._own_pod}, which runs here")
        return {device: tuple(sorted(pods))[:MOST_PODS_OF_A_DEVICE] for device, pods in found.items()}


class HeldDevices:
    """Another provider's devices, with the holders that kubelet names."""

    def __init__(self, provider: DeviceProvider, pod_resources: PodResources) -> None:
        self._provider = provider
        self._pod_resources = pod_resources
        self._found: tuple[Device, ...] = ()
        self._told: tuple[Device, ...] | None = None

    @property
    def trouble(self) -> str:
        """Why the devices cannot be asked about now; kubelet's silence is each device's own."""
        return self._provider.trouble

    def poll(self, now_seconds: float) -> tuple[Device, ...] | None:
        """Return all devices if anything changed."""
        found = self._provider.poll(now_seconds)
        if found is not None:
            self._found = found
        told = tuple(self._held(device) for device in self._found)
        if found is None and told == self._told:
            return None
        self._told = told
        return told

    def _held(self, device: Device) -> Device:
        """The device with its holder: whom kubelet names goes before whom the provider names."""
        pods = self._pod_resources.holders.get(device.id, ())
        if pods:
            return dataclasses.replace(device, holder_pod_uid="", holder_pods=pods)
        known = not self._pod_resources.trouble or bool(device.holder_pod_uid)
        return dataclasses.replace(device, holder_known=known)
