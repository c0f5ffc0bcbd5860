"""What the operator's own objects say of it: pause, leader, mode cap. Pure."""

from dataclasses import dataclass
from typing import Final

from kvpool.api import labels
from kvpool.api.common import Mode
from kvpool.cluster.election import LeaseRecord
from kvpool.cluster.resources import Obj
from kvpool.model.snapshot import Uninstall

LEASE_NAME: Final = "kvpool-operator"
OPERATOR_SELECTOR: Final = f"app.kubernetes.io/name=kvpool,{labels.COMPONENT}=operator"


@dataclass(frozen=True, slots=True)
class Pause:
    """The pause of the whole cluster, as it stands."""

    paused: bool
    by: str = ""
    at: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OperatorState:
    """What the operator's objects say; None where they are not there or may not be read."""

    namespace: str
    pause: Pause = Pause(paused=False)
    lease: LeaseRecord | None = None
    mode_cap: Mode | None = None
    uninstall: Uninstall | None = None


def read_pause(config_map: Obj | None) -> Pause:
    """Read the pause ConfigMap; without one nothing is paused."""
    data = (config_map or {}).get("data") or {}
    return Pause(
        paused=data.get("paused") == "true",
        by=str(data.get("by", "")),
        at=str(data.get("at", "")),
        reason=str(data.get("reason", "")),
    )


def mode_of(deployment: Obj) -> Mode | None:
    """The value of `--mode` of the operator's container."""
    containers: list[Obj] = deployment["spec"]["template"]["spec"].get("containers") or []
    for container in containers:
        for argument in [*(container.get("command") or ()), *(container.get("args") or ())]:
            name, _, value = str(argument).partition("=")
            if name == "--mode" and value in set(Mode):
                return Mode(value)
    return None
