"""Moves of slots as the cluster's objects tell them: waited for, and put on one clock with the injection."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass

from demo.engines import NAMESPACE
from devcluster.rest import Api, JsonObject

KVPOOL = "kvpool.dev/v1alpha1"
STAGES = ("detect", "cordon", "fence", "bind", "serving")
FINAL = ("Succeeded", "Failed", "Cancelled")


@dataclass(frozen=True)
class Injection:
    """A fault, at one instant on both clocks."""

    what: str
    wall: dt.datetime
    monotonic: float

    @classmethod
    def now(cls, what: str) -> Injection:
        """The fault happens now."""
        return cls(what, dt.datetime.now(dt.UTC), time.monotonic())

    def seconds_until(self, moment: str) -> float:
        """Seconds from the injection to an RFC 3339 moment."""
        return round((dt.datetime.fromisoformat(moment) - self.wall).total_seconds(), 3)


@dataclass(frozen=True)
class Move:
    """A finished Remap and what it moved."""

    remap: JsonObject
    epoch_before: int
    seconds: dict[str, float]
    """By stage, since the injection; stages that the Remap does not record are left out."""
    injection: Injection

    @property
    def name(self) -> str:
        """The Remap's name."""
        return str(self.remap["metadata"]["name"])

    @property
    def slot(self) -> str:
        """The slot's name."""
        return str(self.remap["spec"]["slot"])

    @property
    def succeeded(self) -> bool:
        """Whether the slot serves in its new place."""
        return bool(self.remap["status"]["phase"] == "Succeeded")

    def places(self, side: str) -> str:
        """`from` or `to` as node/device."""
        return ", ".join(f"{seat['node']}/{'+'.join(seat['devices'])}" for seat in self.remap["spec"][side])


def seat_on(api: Api, node: str, role: str) -> tuple[str, str]:
    """The slot of a role that holds a seat on a node, and the first device there. Raises LookupError."""
    for slot in api.list(KVPOOL, "EngineSlot", NAMESPACE):
        spec = slot["spec"]
        for seat in spec.get("seats", []):
            if spec["role"] == role and seat["node"] == node:
                return str(slot["metadata"]["name"]), str(seat["devices"][0])
    raise LookupError(f"no {role} slot has a seat on {node}")


def wait_for_move(api: Api, slot: str, injection: Injection, deadline_seconds: float) -> Move:
    """Wait for the slot's next move after the injection to end. Raises TimeoutError."""
    found: list[JsonObject] = []

    def over() -> bool:
        found[:] = [
            remap
            for remap in api.list(KVPOOL, "Remap", NAMESPACE)
            if remap["spec"]["slot"] == slot
            and remap["spec"]["kind"] != "Initial"
            and _created(remap) >= injection.wall.replace(microsecond=0)
            and remap.get("status", {}).get("phase") in FINAL
        ]
        return bool(found)

    api.wait_until(over, deadline_seconds, f"a move of slot {slot} to end")
    remap = found[-1]
    ends = {stage["name"]: stage["endedAt"] for stage in remap["status"].get("stages", [])}
    return Move(
        remap,
        epoch_before=int(remap["spec"]["fromEpoch"]),
        seconds={name: injection.seconds_until(end) for name, end in ends.items()},
        injection=injection,
    )


def _created(remap: JsonObject) -> dt.datetime:
    return dt.datetime.fromisoformat(remap["metadata"]["creationTimestamp"])
