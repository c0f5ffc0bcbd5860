"""kubelet's PodResources socket, served by a test."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from google.protobuf.message import Message

from kvpool_agent.kubelet import podresources_pb2 as wire
from kvpool_agent.kubelet import podresources_pb2_grpc

AGENT_POD = "kvpool-system/kvpool-agent-x"
RESOURCE = "kvpool.dev/sim-accelerator"


class FakeKubelet(podresources_pb2_grpc.PodResourcesListerServicer):
    """Answers List with what the test set; runs in threads of its own."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.pods: list[wire.PodResources] = [a_pod(AGENT_POD)]
        self.calls = 0
        self.refuses: grpc.StatusCode | None = None
        self._server: grpc.Server | None = None

    def List(  # noqa: N802 - the API's own name
        self, request: Message, context: grpc.ServicerContext
    ) -> wire.ListPodResourcesResponse:
        """Say who holds what."""
        self.calls += 1
        if self.refuses is not None:
            context.abort(self.refuses, "as the test wants")
        return wire.ListPodResourcesResponse(pod_resources=self.pods)

    def hold(self, **devices: str) -> None:
        """Let pods (namespace/name) hold devices, each by id; others hold nothing any more."""
        self.pods = [a_pod(AGENT_POD)] + [a_pod(pod, [device]) for device, pod in devices.items()]

    def start(self) -> FakeKubelet:
        self._server = grpc.server(ThreadPoolExecutor(2))
        podresources_pb2_grpc.add_PodResourcesListerServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop(0).wait(5)
            self._server = None
        self.socket.unlink(missing_ok=True)


def a_pod(pod: str, devices: Iterable[str] = (), resource: str = RESOURCE) -> wire.PodResources:
    namespace, _, name = pod.partition("/")
    given = [wire.ContainerDevices(resource_name=resource, device_ids=devices)] if devices else []
    container = wire.ContainerResources(name="main", devices=given)
    return wire.PodResources(namespace=namespace, name=name, containers=[container])
