"""The summary: what was measured, as a table for people and as build/demo/summary.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo.failing import Failure
from demo.memory import Footprint
from demo.moves import STAGES
from demo.requests_told import WindowCounts
from demo.screen import Screen, size
from devcluster.rest import JsonObject
from kvpool.api.quantity import parse_quantity

FIGURES = ("declared", "admitted", "bound", "used", "foreign")


@dataclass
class Measured:
    """Everything that the steps measured; None and empty until they did."""

    pool: JsonObject | None = None
    replay_requests: int = 0
    hit_rate_before: float | None = None
    hit_rate_after: float | None = None
    hit_rate_ceiling: float | None = None
    failures: list[Failure] = field(default_factory=list)
    windows: list[WindowCounts] = field(default_factory=list)
    sent: int = 0
    failed: int = 0
    router: JsonObject = field(default_factory=dict)
    foreign_writes: int | None = None
    objects_lost: int | None = None
    memory: Sequence[Footprint] = ()
    form: str = ""
    """Of the demonstration: Form.name_in_summary."""
    seconds: float = 0.0
    """From the first step to the summary."""


def summarise(measured: Measured) -> dict[str, Any]:
    """Return the summary; sizes in bytes, times in seconds since the injection."""
    tiers = [] if measured.pool is None else measured.pool["status"]["tiers"]
    return {
        "form": measured.form,
        "seconds": round(measured.seconds, 1),
        "pool": {
            "tiers": [
                {"name": tier["name"], **{name: parse_quantity(tier[name]) for name in FIGURES}}
                for tier in tiers
            ]
        },
        "replay": {
            "requests": measured.replay_requests,
            "hitRateBefore": measured.hit_rate_before,
            "hitRateAfter": measured.hit_rate_after,
            "hitRateCeiling": measured.hit_rate_ceiling,
        },
        "remaps": [_remap(failure) for failure in measured.failures],
        "requests": {
            "sent": measured.sent,
            "failed": measured.failed,
            "failedAfterWeightZero": sum(window.failed_after_zero for window in measured.windows),
        },
        "router": {
            "revision": measured.router.get("revision"),
            "acknowledged": measured.router.get("acknowledged"),
        },
        "audit": {"foreignWritesInObserve": measured.foreign_writes},
        "restart": {"objectsLost": measured.objects_lost},
        "memory": [
            {
                "component": one.component,
                "pod": one.pod,
                "residentBytes": one.resident_bytes,
                "limitBytes": one.limit_bytes,
            }
            for one in measured.memory
        ],
    }


def write(summary: dict[str, Any], path: Path) -> None:
    """Write the summary. Raises OSError."""
    path.write_text(json.dumps(summary, indent=2) + "\n")


def show(screen: Screen, measured: Measured) -> None:
    """Show the figures that people ask for."""
    summary = summarise(measured)
    rows = [
        (
            f"{tier['name']} declared / admitted / bound / used",
            " / ".join(size(tier[name]) for name in FIGURES[:4]),
        )
        for tier in summary["pool"]["tiers"]
    ]
    if measured.hit_rate_before is not None and measured.hit_rate_after is not None:
        rates = f"{measured.hit_rate_before:.4f}, {measured.hit_rate_after:.4f}"
        rows.append(
            (
                "hit rate before, after (with room for everything)",
                f"{rates} ({measured.hit_rate_ceiling:.4f})",
            )
        )
    for failure, window in zip(measured.failures, measured.windows, strict=False):
        zero = failure.zero_at - failure.injection.monotonic
        times = [
            f"{failure.move.seconds[name]:.2f} s"
            for name in ("bind", "serving")
            if name in failure.move.seconds
        ]
        rows.append(
            (f"{failure.injection.what}: weight 0, bound, serving", ", ".join([f"{zero:.2f} s", *times]))
        )
        rows.append(
            (
                "  requests: sent, failed before weight 0, after",
                f"{window.sent}, {window.failed_before_zero}, {window.failed_after_zero}",
            )
        )
    rows += [
        ("requests sent, failed", f"{measured.sent}, {measured.failed}"),
        ("objects lost by restarting every agent", str(measured.objects_lost)),
        ("writes on objects of others in mode Observe", str(measured.foreign_writes)),
        ("the whole demonstration", f"{measured.seconds:.0f} s"),
    ]
    screen.table("What was measured", ("", ""), rows)


def _remap(failure: Failure) -> dict[str, Any]:
    move = failure.move
    seconds = dict(move.seconds)
    # What the gateway was seen to do, where the Remap does not say when its slot was cordoned.
    seconds.setdefault("cordon", round(failure.zero_at - failure.injection.monotonic, 3))
    return {
        "slot": move.slot,
        "from": move.places("from"),
        "to": move.places("to"),
        "epochBefore": move.epoch_before,
        "epochAfter": move.remap["spec"]["epoch"],
        "kind": move.remap["spec"]["kind"],
        "cause": move.remap["spec"]["cause"],
        "fenceLevel": failure.fence_level,
        "seconds": {name: seconds.get(name) for name in STAGES},
    }
