"""The smallest engine: registers over the local API, obeys at once, and writes what it did."""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Iterator

import grpc

from kvpool.wire.v1alpha1 import local_pb2, local_pb2_grpc


class Engine:
    """Serves one slot at most, under the epoch it was told last."""

    def __init__(self, pod_uid: str, devices: list[str]) -> None:
        self.pod_uid = pod_uid
        self.devices = devices
        self.slot = ""
        self.epoch = 0

    def stay_connected(self, socket: str) -> None:
        while True:
            try:
                with grpc.insecure_channel(f"unix:{socket}") as channel:
                    self._one_stream(local_pb2_grpc.LocalServiceStub(channel))
            except grpc.RpcError as error:
                print(f"disconnected: {error.code()}", flush=True)
            time.sleep(0.1)

    def _one_stream(self, stub: local_pb2_grpc.LocalServiceStub) -> None:
        unsent: queue.Queue[local_pb2.AttachRequest] = queue.Queue(16)
        register = local_pb2.Register(
            pod_uid=self.pod_uid,
            pod_name=f"inference/{self.pod_uid}",
            endpoint="10.0.0.9:8000",
            devices=self.devices,
            standby=not self.slot,
            readiness="EngineReady",
            slot=self.slot,
            epoch=self.epoch,
        )
        unsent.put(local_pb2.AttachRequest(register=register))
        for response in stub.Attach(_all_of(unsent)):
            if response.HasField("serve"):
                self.slot, self.epoch = response.serve.slot, response.serve.epoch
                print(f"serving {self.slot} under {self.epoch}", flush=True)
                answer = local_pb2.AttachRequest(
                    attached=local_pb2.Attached(slot=self.slot, epoch=self.epoch)
                )
                unsent.put(answer)
            elif response.HasField("stop"):
                print(f"stopped {response.stop.slot}: {response.stop.reason}", flush=True)
                self.slot, self.epoch = "", 0
                stopped = local_pb2.Stopped(slot=response.stop.slot, epoch=response.stop.epoch)
                unsent.put(local_pb2.AttachRequest(stopped=stopped))


def _all_of(unsent: queue.Queue[local_pb2.AttachRequest]) -> Iterator[local_pb2.AttachRequest]:
    while True:
        yield unsent.get()


if __name__ == "__main__":
    Engine(sys.argv[2], sys.argv[3:]).stay_connected(sys.argv[1])
