"""Steps: an accelerator fails, then a whole host; what kvpool does about either."""

from __future__ import annotations

from dataclasses import dataclass

from demo.cluster import RACKS, Cluster
from demo.engines import ENGINES, NAMESPACE
from demo.moves import Injection, Move, seat_on, wait_for_move
from demo.route_watch import Carried, RouteWatch, rise
from demo.screen import Screen
from demo.takeover import FULL_WEIGHT, wait_for_full_weights
from devcluster.rest import JsonObject

ZERO_SECONDS = 1.0
BOUND_WITH_RELEASE_SECONDS = 3.0
BOUND_BY_LEASE_SECONDS = 12.0
ATTACH_SECONDS = 2.0
MOVE_SECONDS = 120.0
MOMENT_SECONDS = 0.001
"""Moments in objects are cut off to the millisecond: what they name was over by the next one."""


@dataclass(frozen=True)
class Failure:
    """A fault and the move that answered it; times are seconds since the injection."""

    injection: Injection
    move: Move
    zero_at: float
    """When weight 0 was acknowledged: monotonic seconds."""
    proof: str
    fence_level: str


def fail_accelerator(cluster: Cluster, watch: RouteWatch, screen: Screen) -> Failure:
    """Report a fatal code for the accelerator of a decode engine. Raises TimeoutError."""
    engine = next(engine for engine in ENGINES if engine.role == "decode")
    slot, device = seat_on(cluster.plane.admin, engine.node, "Decode")
    screen.say(f"A fatal code is reported for {engine.node}/{device}, where {slot} sits.")
    injection = Injection.now(f"accelerator {engine.node}/{device}")
    cluster.accelerators[engine.node].fail(device)
    failure = _answered(cluster, watch, slot, injection)
    _show(screen, failure, watch)
    move, bound = failure.move, failure.move.seconds.get("bind", float("inf"))
    zero = failure.zero_at - injection.monotonic
    screen.expect(move.succeeded, f"{move.name} ended as {move.remap['status']['phase']}")
    screen.expect_within(zero, ZERO_SECONDS, "weight 0 acknowledged after")
    _expect_times(screen, move, bound, BOUND_WITH_RELEASE_SECONDS)
    to = move.remap["spec"]["to"][0]["node"]
    screen.expect(RACKS[to] == RACKS[engine.node], f"the spare {to} is in the same rack, {RACKS[to]}")
    screen.expect(failure.proof == "ReleaseAck", f"the old seat is out by {failure.proof}")
    _expect_seated(cluster, screen, slot, move)
    _expect_rise(screen, rise(_steps(failure, watch), slot))
    return failure


def take_host_away(cluster: Cluster, watch: RouteWatch, screen: Screen) -> Failure:
    """Take a host with a decode engine away: its address and every process. Raises TimeoutError."""
    engine = [engine for engine in ENGINES if engine.role == "decode"][-1]
    slot, _ = seat_on(cluster.plane.admin, engine.node, "Decode")
    screen.say(f"{engine.node} goes away, with its address and every process; {slot} sits there.")
    injection = Injection.now(f"host {engine.node}")
    cluster.take_away(engine.node)
    failure = _answered(cluster, watch, slot, injection)
    _show(screen, failure, watch)
    move, bound = failure.move, failure.move.seconds.get("bind", float("inf"))
    screen.expect(move.succeeded, f"{move.name} ended as {move.remap['status']['phase']}")
    _expect_times(screen, move, bound, BOUND_BY_LEASE_SECONDS)
    screen.expect(failure.proof == "GuardExpiry", f"the old seat is out by {failure.proof}")
    _expect_seated(cluster, screen, slot, move)
    _expect_rise(screen, rise(_steps(failure, watch), slot))
    return failure


def _answered(cluster: Cluster, watch: RouteWatch, slot: str, injection: Injection) -> Failure:
    """Wait for the move, then for the ramp, and gather what is known of both."""
    api = cluster.plane.admin
    move = wait_for_move(api, slot, injection, MOVE_SECONDS)
    wait_for_full_weights(cluster, watch)
    fence = move.remap["status"].get("fence") or {"level": "", "proof": ""}
    seen = watch.zero_since(slot, injection.monotonic)
    told = move.seconds.get("cordon")
    zero_at = injection.monotonic + told + MOMENT_SECONDS if told is not None else seen
    if zero_at is None:
        raise TimeoutError(f"nobody saw slot {slot} at weight 0 after {injection.what} failed")
    return Failure(injection, move, zero_at, proof=fence["proof"], fence_level=fence["level"])


def _expect_times(screen: Screen, move: Move, bound: float, most_seconds: float) -> None:
    screen.expect_within(bound, most_seconds, "bound after")
    attach = move.seconds.get("serving", float("inf")) - bound
    screen.expect_within(attach, ATTACH_SECONDS, "serving, counted from there, after")


def _expect_seated(cluster: Cluster, screen: Screen, slot: str, move: Move) -> None:
    """The engine that is attached serves under the slot's new epoch."""
    found: JsonObject = cluster.plane.admin.get("kvpool.dev/v1alpha1", "EngineSlot", slot, NAMESPACE)
    attached = found.get("status", {}).get("attached") or {"podName": "nobody", "epoch": 0}
    epoch = found["spec"]["epoch"]
    screen.expect(
        attached["epoch"] == epoch == move.remap["spec"]["epoch"] > move.epoch_before,
        f"{attached['podName']} serves under epoch {attached['epoch']}, the old one was {move.epoch_before}",
    )


def _expect_rise(screen: Screen, weights: list[int]) -> None:
    """The gateway gave the slot some of its traffic before it gave it all."""
    screen.expect(
        any(0 < weight < FULL_WEIGHT for weight in weights),
        f"its weight in the gateway rose in steps: {', '.join(str(weight) for weight in weights)}",
    )


def _steps(failure: Failure, watch: RouteWatch) -> list[Carried]:
    return [one for one in watch.carried() if one.seen_at >= failure.injection.monotonic]


def _show(screen: Screen, failure: Failure, watch: RouteWatch) -> None:
    move = failure.move
    screen.say(f"{move.remap['spec']['kind']} move {move.name}: {move.places('from')} to {move.places('to')}")
    screen.say(f"  cause: {move.remap['spec']['cause']}")
    screen.table(
        "Stages, in seconds since the fault",
        [*move.seconds],
        [[f"{seconds:.2f}" for seconds in move.seconds.values()]],
    )
    steps = _steps(failure, watch)
    screen.table(
        "Weights that the gateway was seen to work with",
        ["seconds", "revision", *sorted(_slots(steps))],
        [
            [
                f"{step.seen_at - failure.injection.monotonic:.2f}",
                str(step.revision),
                *(str(step.weights.get(slot, "")) for slot in sorted(_slots(steps))),
            ]
            for step in steps
        ],
    )


def _slots(steps: list[Carried]) -> set[str]:
    return {slot for step in steps for slot in step.weights}
