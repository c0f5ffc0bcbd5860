"""The simulated accelerators of one host: the file that agent and engines read and a person may edit."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "devices.json"
FATAL = {"source": "driver", "code": "79", "class": "Fatal"}
"""What NVIDIA's driver reports as XID 79: the device has fallen off the bus."""


class Accelerators:
    """`count` devices of `node`, written to `file`; `holders` are Pod UIDs by device."""

    def __init__(self, file: Path, node: str, count: int) -> None:
        self._file = file
        self._devices: dict[str, dict[str, Any]] = {
            device_id(index): {"id": device_id(index), "uuid": f"GPU-{node}-{index}"}
            for index in range(count)
        }
        self._write()

    def hold(self, holders: Mapping[str, str]) -> None:
        """Say which Pod holds which device, as a kubelet would."""
        for device, uid in holders.items():
            self._devices[device]["holderPodUid"] = uid
        self._write()

    def fail(self, device: str) -> None:
        """Break a device for good."""
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        self._devices[device]["faults"] = [{**FATAL, "at": now}]
        self._write()

    def _write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        partial = self._file.with_name(f".{self._file.name}.new")
        partial.write_text(json.dumps({"devices": list(self._devices.values())}, indent=1) + "\n")
        partial.replace(self._file)


def device_id(index: int) -> str:
    """PCI address of the host's device number `index`."""
    return f"0000:{index + 1:02x}:00.0"
