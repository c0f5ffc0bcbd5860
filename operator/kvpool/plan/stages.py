"""When the stages of a move were over, as offsets from its first evidence."""

from collections.abc import Mapping

from kvpool.api.remap import Remap, RemapFence, RemapPhase, RemapStatus, Stage, StageName
from kvpool.model.instant import Instant, moment_text, parse_moment
from kvpool.rules.fencing import Fence


def final_status(
    remap: Remap,
    phase: RemapPhase,
    marks: Mapping[StageName, float],
    fence: RemapFence | None,
    now: Instant,
    blocked_reason: str = "",
) -> RemapStatus:
    """Return the last status of a move. `marks` are monotonic seconds by stage; unknown ones are left out."""
    return RemapStatus(
        phase=phase,
        stages=stages_of(remap, marks, now),
        fence=fence,
        blocked_reason=blocked_reason,
        finished_at=now.text(),
        conditions=remap.status.conditions,
    )


def stages_of(remap: Remap, marks: Mapping[StageName, float], now: Instant) -> tuple[Stage, ...]:
    """Return the stages that are over, in their order.

    What an earlier leader wrote is kept; a stage ends when it was first seen to be over, and begins when the
    latest one before it did. Stages may overlap: an urgent move goes on while its outputs follow.
    """
    known = {stage.name: stage for stage in remap.status.stages}
    first = parse_moment(remap.spec.first_evidence_at)
    found: list[Stage] = []
    for name in StageName:
        if name in known:
            found.append(known[name])
        elif name in marks:
            ended = now.wall_at(marks[name])
            seconds = max(0.0, (ended - first).total_seconds())
            over = [end for stage in found if (end := parse_moment(stage.ended_at)) <= ended]
            started = moment_text(max(over)) if over else remap.spec.first_evidence_at
            found.append(
                Stage(name=name, started_at=started, ended_at=moment_text(ended), seconds=f"{seconds:.2f}s")
            )
    return tuple(found)


def recorded_fence(fence: Fence) -> RemapFence:
    """Return a fence as the Remap records it."""
    return RemapFence(level=fence.level, proof=fence.proof)
