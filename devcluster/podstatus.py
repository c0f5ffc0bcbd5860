"""A Pod's status as a kubelet would write it, from what is known of the one process that stands for it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from devcluster.rest import JsonObject

CANNOT_START = "CreateContainerConfigError"
BACK_OFF = "CrashLoopBackOff"


@dataclass(frozen=True)
class Containers:
    """How the containers of one Pod are; they share one fate here.

    `failure` says why they could not be started; `exit_code` is that of the last run, None before its end.
    """

    running: bool
    ready: bool
    restarts: int = 0
    exit_code: int | None = None
    failure: str = ""
    final: bool = False
    """Whether they ended and are not to be started again."""


def pod_status(pod: JsonObject, containers: Containers, host_address: str, address: str) -> JsonObject:
    """Return the status of a Pod at `address` on the host at `host_address`."""
    now = timestamp()
    ready = "True" if containers.ready else "False"
    return {
        "phase": _phase(containers),
        "hostIP": host_address,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": pod.get("status", {}).get("startTime", now),
        "conditions": [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Initialized", "status": "True"},
            {"type": "ContainersReady", "status": ready, "lastTransitionTime": now},
            {"type": "Ready", "status": ready, "lastTransitionTime": now},
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": container["image"],
                "ready": containers.ready,
                "started": containers.running,
                "restartCount": containers.restarts,
                "state": _state(containers, now),
                "lastState": _last_state(containers),
            }
            for container in pod["spec"]["containers"]
        ],
    }


def says_ready(thing: JsonObject) -> bool:
    """Tell whether the status of a Pod or Node has it Ready."""
    conditions = thing.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def timestamp() -> str:
    """Return the time as Kubernetes spells it."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _phase(containers: Containers) -> str:
    if containers.final:
        return "Succeeded" if containers.exit_code == 0 else "Failed"
    never_ran = bool(containers.failure) and containers.restarts == 0 and containers.exit_code is None
    return "Pending" if never_ran else "Running"


def _state(containers: Containers, now: str) -> JsonObject:
    if containers.running:
        return {"running": {"startedAt": now}}
    if containers.failure:
        return {"waiting": {"reason": CANNOT_START, "message": containers.failure}}
    if containers.final:
        return _terminated(containers)
    return {"waiting": {"reason": BACK_OFF, "message": f"exit status {containers.exit_code}"}}


def _last_state(containers: Containers) -> JsonObject:
    return {} if containers.exit_code is None or containers.final else _terminated(containers)


def _terminated(containers: Containers) -> JsonObject:
    """A signal's number counts as 128 + number, as container runtimes say it."""
    code = containers.exit_code or 0
    return {"terminated": {"exitCode": code if code >= 0 else 128 - code}}
