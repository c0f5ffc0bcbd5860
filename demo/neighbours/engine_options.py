"""What one mock engine is told: as a value, as a command line, and back."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from demo.neighbours.device_plugin_service import DEVICES
from kvpool.api.quantity import parse_quantity


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """One engine.

    `segment_bytes` of own memory join the store of `master` ("host:port") under the name
    `address`:`store_port`. `local_api` is the agent's socket, `pod_name` is "namespace/name". A standby says
    that it is at `readiness` (Device, WeightsLoaded or EngineReady), and answers 503 until the agent gives it
    a seat, which takes `attach_seconds`. `devices` are the accelerators it holds; when `devices_file` says
    that one of them is broken, its requests fail.
    """

    name: str
    address: str
    port: int = 8000
    model: str = "demo"
    service_seconds: float = 0.02
    attach_seconds: float = 0.5
    standby: bool = False
    readiness: str = "EngineReady"
    guarded: bool = False
    segment_bytes: int = 0
    store_port: int = 17001
    master: str | None = None
    local_api: Path | None = None
    pod_uid: str = ""
    pod_name: str = ""
    devices: tuple[str, ...] = ()
    devices_file: Path | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot work. Raises ValueError."""
        if self.segment_bytes and not self.master:
            raise ValueError(
                f"{self.name}: segment_bytes {self.segment_bytes} without a master to bring it to"
            )
        if self.standby and self.local_api is None:
            raise ValueError(f"{self.name}: standby without local_api: no seat could ever come")
        if self.local_api is not None and not self.pod_uid:
            raise ValueError(f"{self.name}: local_api without pod_uid: the agent takes no engine without one")

    def arguments(self) -> list[str]:
        """Return the command line that `parse_options` reads back."""
        words: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            flag = f"--{field.name.replace('_', '-')}"
            if value is True:
                words.append(flag)
            elif isinstance(value, tuple):
                words += [flag, ",".join(value)]
            elif value is not None and value is not False:
                words += [flag, str(value)]
        return words


def parse_options(arguments: Sequence[str] | None, description: str) -> EngineOptions:
    """Read the command line; ends the process with a message when it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m demo.neighbours.engine",
        description=description,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument("--name", required=True, help="what the engine calls itself in answers")
    parser.add_argument("--address", required=True, help="address to listen on and to name its segment by")
    parser.add_argument("--port", type=int)
    parser.add_argument("--model", help="the label model_name of its metrics")
    parser.add_argument("--service-seconds", type=float, help="how long one completion takes")
    parser.add_argument("--attach-seconds", type=float, help="how long a standby needs to take a seat")
    parser.add_argument("--standby", action="store_true", help="answer 503 until the agent gives a seat")
    parser.add_argument("--readiness", help="how warm it says it is: Device, WeightsLoaded or EngineReady")
    parser.add_argument("--guarded", action="store_true", help="stop when the node's lease runs out")
    parser.add_argument("--segment-bytes", type=parse_quantity, help="own store segment, as 16Mi")
    parser.add_argument("--store-port", type=int, help="second half of the segment's name")
    parser.add_argument("--master", help="host:port of the Mooncake master; needed with --segment-bytes")
    parser.add_argument("--local-api", type=Path, help="socket of the node's agent; without it, no seats")
    parser.add_argument("--pod-uid", help="the pod that this process stands for")
    parser.add_argument("--pod-name", help="namespace/name of that pod")
    parser.add_argument(
        "--devices",
        type=_names,
        default=_names(os.environ.get(DEVICES, "")),
        help=f"accelerators it holds, comma-separated; {DEVICES} is what kubelet gave it",
    )
    parser.add_argument("--devices-file", type=Path, help="the simulated accelerators' state")
    try:
        return EngineOptions(**vars(parser.parse_args(arguments)))
    except ValueError as error:
        parser.error(str(error))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)
