"""Accelerators from a small JSON file that a person can edit to break them.

    {"devices": [
      {"id": "0000:01:00.0", "uuid": "GPU-1", "holderPodUid": "4f1c...",
       "faults": [{"source": "driver", "code": "79", "class": "Fatal",
                   "at": "2026-01-31T12:00:00Z"}]}]}

`holderPodUid`, `faults` and `at` may be left out; a fault without `at` counts from when it was first seen.
The same source and code listed several times count as several sightings. A file that cannot be read makes
every device unknown, never faulty.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import structlog
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

from kvpool.api.supernode import EvidenceClass
from kvpool_agent.devices.base import Device, Fault
from kvpool_keeper.contract import read_small

log = structlog.get_logger()

MOST_DEVICES = 64
MOST_FAULTS = 256
MOST_KINDS = 64
MOST_SIGHTINGS = 32


def _printed(name: str) -> str:
    if not name.isprintable():
        raise ValueError("holds characters that cannot be printed")
    return name


Name = Annotated[str, AfterValidator(_printed)]
"""What the operator takes; it refuses a whole Report for one name that it does not."""


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _FaultEntry(_Entry):
    source: Name = Field(min_length=1, max_length=63)
    code: Name = Field(min_length=1, max_length=63)
    evidence_class: EvidenceClass = Field(alias="class")
    at: AwareDatetime | None = None

    @field_validator("code", mode="before")
    @classmethod
    def _numbers_are_codes_too(cls, value: object) -> object:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _DeviceEntry(_Entry):
    id: Name = Field(min_length=1, max_length=128)
    uuid: Name = Field(default="", max_length=128)
    holder_pod_uid: Name = Field(default="", alias="holderPodUid", max_length=64)
    faults: tuple[_FaultEntry, ...] = Field(default=(), max_length=MOST_FAULTS)

    @field_validator("faults")
    @classmethod
    def _kinds_are_few(cls, faults: tuple[_FaultEntry, ...]) -> tuple[_FaultEntry, ...]:
        kinds = len({(fault.source, fault.code) for fault in faults})
        if kinds > MOST_KINDS:
            raise ValueError(f"names {kinds} kinds of faults, at most {MOST_KINDS} are taken")
        return faults


class _File(_Entry):
    devices: tuple[_DeviceEntry, ...] = Field(max_length=MOST_DEVICES)

    @field_validator("devices")
    @classmethod
    def _ids_are_unique(cls, devices: tuple[_DeviceEntry, ...]) -> tuple[_DeviceEntry, ...]:
        ids = [device.id for device in devices]
        for device_id in ids:
            if ids.count(device_id) > 1:
                raise ValueError(f"device id {device_id!r} is there {ids.count(device_id)} times")
        return devices


class SimulatedDevices:
    """Reads the file whenever it changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._devices: tuple[Device, ...] = ()
        self._first_seen: dict[tuple[str, str, str], float] = {}
        self.trouble = "the file was not read yet"

    def poll(self, now_seconds: float) -> tuple[Device, ...] | None:
        """Return the devices if the file changed."""
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp == self._stamp:
                return None
            text = read_small(self._path, follow=True)
        except OSError as error:
            self._stamp = None
            return self._unknown(f"{self._path}: {error.strerror}")
        self._stamp = stamp
        try:
            content = _File.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            return self._unknown(f"{self._path}: {field or 'content'}: {first['msg']}")
        self.trouble = ""
        self._devices = tuple(self._device(entry, now_seconds) for entry in content.devices)
        live = {(d.id, f.source, f.code) for d in self._devices for f in d.faults}
        self._first_seen = {key: at for key, at in self._first_seen.items() if key in live}
        return self._devices

    def _unknown(self, trouble: str) -> tuple[Device, ...] | None:
        """Nothing is known of the devices that were there; says so once a trouble."""
        if trouble == self.trouble:
            return None
        log.warning("devices cannot be asked about", trouble=trouble)
        self.trouble = trouble
        self._devices = tuple(
            dataclasses.replace(device, observed=False, faults=()) for device in self._devices
        )
        return self._devices

    def _device(self, entry: _DeviceEntry, now_seconds: float) -> Device:
        kinds = sorted({(fault.source, fault.code) for fault in entry.faults})
        return Device(
            id=entry.id,
            uuid=entry.uuid,
            holder_pod_uid=entry.holder_pod_uid,
            faults=tuple(self._fault(entry, source, code, now_seconds) for source, code in kinds),
        )

    def _fault(self, entry: _DeviceEntry, source: str, code: str, now_seconds: float) -> Fault:
        same = [fault for fault in entry.faults if (fault.source, fault.code) == (source, code)]
        first_seen = self._first_seen.setdefault((entry.id, source, code), now_seconds)
        seen = sorted(fault.at.timestamp() if fault.at else first_seen for fault in same)
        return Fault(source, code, same[-1].evidence_class, tuple(seen[-MOST_SIGHTINGS:]))
