"""Finds Mooncake masters: Services with the master's ports, and pods that run it without one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kvpool.cluster.resources import Obj

RPC_PORT: Final = 50051
ADMIN_PORT: Final = 9003
_PROGRAM: Final = "mooncake_master"


@dataclass(frozen=True, slots=True)
class Master:
    """A Service in front of a master; ports are those of its pods."""

    service: str
    rpc_port: int
    admin_port: int | None
    """None: the Service does not name it."""

    @property
    def pool(self) -> str:
        """Name of the KVPool that looks at it."""
        return self.service.removesuffix("-master").removesuffix("-mooncake") or self.service


def find_masters(services: Iterable[Obj]) -> list[Master]:
    """Services that name the RPC port, or that are called after the master and name its admin port."""
    found = []
    for service in services:
        name = str(service["metadata"]["name"])
        ports = _pod_ports(service)
        if RPC_PORT in ports or ("mooncake" in name and ADMIN_PORT in ports):
            found.append(Master(name, ports.get(RPC_PORT, RPC_PORT), ports.get(ADMIN_PORT)))
    return sorted(found, key=lambda master: master.service)


def _pod_ports(service: Obj) -> dict[int, int]:
    """Port of the Service to port of its pods; a port that is named counts as the Service's own."""
    ports = {}
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort")
        ports[int(port["port"])] = target if isinstance(target, int) else int(port["port"])
    return ports


def masters_without_service(pods: Iterable[Obj], services: Sequence[Obj]) -> list[str]:
    """Names of pods that run a master and that no Service selects."""
    selectors = [service["spec"].get("selector") or {} for service in services]
    return sorted(
        str(pod["metadata"]["name"])
        for pod in pods
        if _runs_master(pod)
        and not any(
            selector and selector.items() <= (pod["metadata"].get("labels") or {}).items()
            for selector in selectors
        )
    )


def _runs_master(pod: Obj) -> bool:
    return any(
        _PROGRAM in str(word)
        for container in pod["spec"].get("containers") or ()
        for word in (*(container.get("command") or ()), *(container.get("args") or ()))
    )
