"""One urgent move under a steady stream of requests, with the times of its steps as seen from outside."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass

from demo.load import Classified, classify
from devcluster.rest import JsonObject
from tests.harness.waiting import wait_until
from tests.system.failover.figures import record
from tests.system.failover.world import FailoverWorld, first_times, node_of, serves

MOVE_SECONDS = 30.0


@dataclass(frozen=True)
class Move:
    """What one move looked like. Times are seconds since the accelerator was broken."""

    slot: str
    left: str
    taken: str
    epoch_before: int
    weight_zero: float
    bound: float
    first_answer: float
    """When the first request was answered under the new epoch."""
    full: float
    requests: Classified
    remap: JsonObject
    began_at: dt.datetime
    """Wall clock, to be set against the audit log."""
    answered_by_old_place: int
    """Requests that the old engine answered although they were sent after weight 0 was in force."""

    @property
    def stages(self) -> dict[str, str]:
        """Seconds by stage, as the Remap records them."""
        return {stage["name"]: stage["seconds"] for stage in self.remap["status"]["stages"]}

    def seconds_to(self, stage: str) -> float:
        """From the first evidence to the end of a stage, as the Remap records it."""
        return float(self.stages[stage].removesuffix("s"))


def fail_under_load(world: FailoverWorld) -> Move:
    """Break the accelerator of the first slot and wait until the slot serves again at full weight."""
    name, left = world.a_slot()
    epoch = world.slot(name)["spec"]["epoch"]

    def moved() -> bool:
        return bool(world.slot(name)["spec"]["epoch"] > epoch)

    def let_go() -> bool:
        # The first revision after the fault gives the old place nothing, and so does every later one.
        return (world.revision_in_force() or 0) > revision

    revision = wait_until(lambda: world.revision_in_force() or 0, MOVE_SECONDS, "a revision in force")
    began_at = dt.datetime.now(dt.UTC)
    with world.requests() as traffic:
        broken_at = world.break_device(left)
        seen = first_times(
            {
                "weight zero": let_go,
                "bound": moved,
                "full": lambda: moved() and serves(world.slot(name)),
            },
            MOVE_SECONDS,
        )
        wait_until(lambda: _is_over(world.remaps(name, epoch)), MOVE_SECONDS, "the Remap's last status")
    slot = world.slot(name)
    (remap,) = world.remaps(name, epoch)
    fresh = str(slot["spec"]["epoch"])
    after_zero = [sent for sent in traffic.sent if sent.sent_at >= seen["weight zero"]]
    move = Move(
        slot=name,
        left=left,
        taken=node_of(slot),
        epoch_before=epoch,
        weight_zero=round(seen["weight zero"] - broken_at, 3),
        bound=round(seen["bound"] - broken_at, 3),
        first_answer=round(
            min(sent.finished_at for sent in traffic.sent if sent.succeeded and sent.epoch == fresh)
            - broken_at,
            3,
        ),
        full=round(seen["full"] - broken_at, 3),
        requests=classify(traffic.sent, instant=seen["weight zero"]),
        remap=remap,
        began_at=began_at,
        answered_by_old_place=sum(sent.epoch == str(epoch) for sent in after_zero),
    )
    _record(move)
    return move


def _is_over(remaps: list[JsonObject]) -> bool:
    return bool(remaps) and remaps[-1]["status"].get("phase") == "Succeeded"


def _record(move: Move) -> None:
    seconds = {
        "weightZero": move.weight_zero,
        "bound": move.bound,
        "firstAnswer": move.first_answer,
        "full": move.full,
    }
    record("urgent move", seconds=seconds, stages=move.stages, requests=asdict(move.requests))
