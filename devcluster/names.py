"""Names of headless Services in a hosts file: what a cluster's DNS would answer with, for plain processes.

`<service>.<namespace>.svc` and `.svc.cluster.local` stand for every ready address in the Service's
EndpointSlices. In a sandbox /etc/hosts is a private copy, so that nothing of it is left behind. Several
control planes may share the file: each has a section of its own in it.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from devcluster.rest import Api, ApiError, JsonObject

PERIOD_SECONDS = 0.25
JOIN_SECONDS = 10.0
SERVICE_LABEL = "kubernetes.io/service-name"
DOMAIN = "cluster.local"


class ServiceNames:
    """Keeps a section of `file` in step with the Services of `api`; the rest stays. A context manager."""

    def __init__(self, api: Api, file: Path) -> None:
        self._api = api
        self._file = file
        self._heading = f"# Headless Services of {api.credentials.server}\n"
        self._ending = f"# End of {api.credentials.server}\n"
        self._written: list[str] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def start(self) -> ServiceNames:
        """Follow the Services until `stop`; an API outage leaves the names as they were."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End, and take the section out of the file."""
        self._ended.set()
        self._thread.join(JOIN_SECONDS)
        edit(self._file, self._without_section)

    def __enter__(self) -> ServiceNames:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def update(self) -> None:
        """Write the names as they are now. Raises ApiError or OSError."""
        slices = self._api.list("discovery.k8s.io/v1", "EndpointSlice", label_selector=SERVICE_LABEL)
        services = self._api.list("v1", "Service")
        lines = name_lines(services, slices)
        if lines != self._written:
            section = "".join([self._heading, *(f"{line}\n" for line in lines), self._ending])
            edit(self._file, lambda text: self._without_section(text) + section)
            self._written = lines

    def _without_section(self, text: str) -> str:
        before, heading, rest = text.partition(self._heading)
        return before + rest.partition(self._ending)[2] if heading else text

    def _loop(self) -> None:
        while not self._ended.wait(PERIOD_SECONDS):
            try:
                self.update()
            except (ApiError, OSError):
                continue
        self._api.close()


def edit(file: Path, change: Callable[[str], str]) -> None:
    """Change a file that other processes change too, one at a time. Raises OSError.

    In place: the file may be a mount point, and processes in other mount namespaces read the same one. It is
    never empty meanwhile, but who reads at the wrong moment may see the end of the old text.
    """
    with file.open("rb+", buffering=0) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        text = change(stream.readall().decode()).encode()
        os.pwrite(stream.fileno(), text, 0)
        stream.truncate(len(text))


def name_lines(services: list[JsonObject], slices: list[JsonObject]) -> list[str]:
    """Return the lines of a hosts file for the headless ones of `services`, sorted."""
    headless = {
        (service["metadata"]["namespace"], service["metadata"]["name"])
        for service in services
        if service["spec"].get("clusterIP") == "None"
    }
    found: set[str] = set()
    for slice_ in slices:
        meta = slice_["metadata"]
        owner = (meta["namespace"], meta["labels"][SERVICE_LABEL])
        if owner not in headless:
            continue
        name = f"{owner[1]}.{owner[0]}.svc"
        for endpoint in slice_.get("endpoints") or []:
            if endpoint.get("conditions", {}).get("ready", True):
                found |= {f"{address} {name} {name}.{DOMAIN}" for address in endpoint["addresses"]}
    return sorted(found)
