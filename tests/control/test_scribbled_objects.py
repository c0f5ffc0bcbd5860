"""Whatever a person writes into an object that the schema lets through, every loop goes on.

Not only people's kinds: those that the operator writes, and all statuses, can be edited by hand as well. Each
leaf of each object of a living world is replaced, one at a time, by values that mean nothing. What the model
then refuses the schema refuses too (tests/api/test_agreement.py), or, in an object from earlier, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, cast

import pytest
from prometheus_client import CollectorRegistry

from kvpool.api.pdgroup import PDGroup
from kvpool.api.schema import Model
from kvpool.control.figures import Figures
from kvpool.control.metrics import OperatorMetrics
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.capacity import capacity_plan
from kvpool.plan.domain_statuses import domain_statuses
from kvpool.plan.failover import failover_plan
from kvpool.plan.node_plan import node_plans
from kvpool.wire.convert_operator import PlanData, operator_message_to_wire
from kvpool.world.project import Malformed, parse_object
from tests.builders.objects import a_pool
from tests.plan.capacity.test_conditions import a_bound_pool
from tests.plan.failover.serving import broken, serving_world
from tests.plan.failover.test_statuses import with_prefill

World = tuple[Snapshot, Instant]
Path = tuple[str | int, ...]

KINDS: Final = ("budgets", "pools", "groups", "supernodes", "kvnodes", "slots", "remaps")
TEXTS: Final = (
    *("", "x", "a/b/c", "/", "..", "-1", "0/0", "0s", "0.5", "\u0000", "\N{LATIN SMALL LETTER SHARP S}" * 30),
    *("7Ei", "0.1m", "1e3", "9223372036854775807", "99999999999h", "9999999999999999999999999999999h"),
    *("soon", "2026-13-45T99:99:99Z", "2026-02-30T00:00:00Z", "2026-01-02", "2026-01-02T03:04:05"),
    *("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999Z", "2999-12-31T23:59:59Z"),
)
NUMBERS: Final = (0, 1, -1, 2**31, 2**42 - 1, 2**43, 2**62 - 1, 2**63 - 1)
NOT_FOR_PEOPLE: Final = ("apiVersion", "kind")
LABELS_ALONE: Final = ("labels", "annotations")
"""Of metadata, what people may write; the API server owns the rest."""


def moved() -> World:
    """A slot that moved, its device in quarantine."""
    world = broken(serving_world()).run(4)
    return world.operator.snapshot(), world.now


def moving() -> World:
    """A slot on its way."""
    world = broken(serving_world())
    for _ in range(2):
        world.tick(0.25)
        world.round()
    assert world.open_remaps()
    return world.operator.snapshot(), world.now


def bound() -> World:
    """A pool whose units are bound on two nodes; one agent has not applied all."""
    cluster = a_bound_pool(mooncake=True)
    cluster.change_view("node-1", "inference.chat.dram.n0", resident_bytes=0)
    cluster.step()
    return cluster.snapshot(), cluster.now


def planned() -> World:
    """A pool and a group of both roles that ask the planner; their engines are weighed."""
    world = with_prefill(1, 4).run(60, step=5.0)
    world.operator.refresh()
    world.operator.hear()
    snapshot = world.operator.snapshot()
    (key,) = snapshot.groups
    raw = snapshot.groups[key].dump()
    raw["spec"] |= {
        "ratio": {"min": "1/8", "max": "3/1"},
        "routing": {"policy": "CompletionTime"},
        "slo": {"ttft": "3s", "tpot": "60ms"},
        "planning": {
            "requests": {"promptTokens": 4096, "outputTokens": 256, "hitPercent": 10},
            "prefill": {"accelerator": "H200", "accelerators": 1},
            "decode": {"accelerator": "H200", "accelerators": 1},
            "transferLink": "RoCE-200G",
        },
    }
    group = PDGroup.parse(raw)
    name = group.spec.pool_ref.name
    pool = a_pool(name, key.namespace).asking(DRAM="1Gi", SSD="1Gi").with_spec(planning=POOL_PLANNING).build()
    pools = {ObjectKey(key.namespace, name): pool}
    return replace(snapshot, groups={key: group}, pools=pools), world.now


POOL_PLANNING: Final = {
    "model": {"preset": "Qwen3-8B"},
    "sessions": {"contextTokens": 4096, "turnTokens": 256, "returnAfter": "60s", "ttft": "2s"},
    "host": {
        "accelerator": "H200",
        "accelerators": 8,
        "hostLink": "PCIe5-x16",
        "cxlLink": "CXL2-x16",
        "drives": 4,
        "driveLink": "NVMe-Gen4",
        "driveWritesPerDay": "0.3",
    },
    "placement": {"exclusive": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world", [moved, moving, bound, planned])
def test_no_value_that_the_schema_lets_through_stops_a_loop(world: Callable[[], World], kind: str) -> None:
    snapshot, now = world()
    every_loop(snapshot, now)
    faults: dict[str, str] = {}
    for key, known in list(getattr(snapshot, kind).items())[:2]:
        for where, scribbled in variants(known):
            objects = {**getattr(snapshot, kind), key: scribbled}
            try:
                every_loop(replace(snapshot, **cast("Any", {kind: objects})), now)
            except Exception as error:  # noqa: BLE001 - whatever a loop raises is what is looked for
                faults[where] = repr(error)
    assert not faults


def every_loop(snapshot: Snapshot, now: Instant) -> None:
    """What the operator does in each of its loops, up to what is sent."""
    figures = Figures(OperatorMetrics(CollectorRegistry()))
    figures.failover(replace(snapshot, remaps={}), failover_plan(replace(snapshot, remaps={}), now))
    moves = failover_plan(snapshot, now)
    figures.failover(snapshot, moves)
    capacity = capacity_plan(snapshot, now)
    figures.capacity(snapshot, capacity)
    for action in (*moves.actions, *capacity.actions, *domain_statuses(snapshot, now).actions):
        for part in ("spec", "status"):
            written = getattr(action, part, None)
            if isinstance(written, Model):
                written.dump()
    for plan in node_plans(snapshot).values():
        operator_message_to_wire(PlanData(1, 1, 1, plan)).SerializeToString()


def variants(known: Model) -> Iterator[tuple[str, Model]]:
    """Each object that is one scribble away and can still be read."""
    raw = known.dump()
    for path, value in leaves(raw):
        if path[0] in NOT_FOR_PEOPLE or (path[0] == "metadata" and path[1] not in LABELS_ALONE):
            continue
        for other in others(value):
            scribbled = parse_object(type(known), put(raw, path, other))
            if not isinstance(scribbled, Malformed):
                yield f"{'.'.join(map(str, path))} = {other!r}", scribbled


def others(value: object) -> tuple[object, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return NUMBERS
    return ([],) if isinstance(value, list) else TEXTS


def leaves(value: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Each scalar and each list, with its place; of a list the first two entries."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, (*path, name))
        return
    yield path, value
    if isinstance(value, list):
        for index, part in enumerate(value[:2]):
            yield from leaves(part, (*path, index))


def put(value: Any, path: Path, new: object) -> Any:  # noqa: ANN401 - JSON of any shape
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, first: put(value[first], rest, new)}
    return [put(part, rest, new) if index == first else part for index, part in enumerate(value)]
