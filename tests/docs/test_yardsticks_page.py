"""The page that compares with other simulators shows what kvpool really answers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kvpool.sim.serving.design import InstanceSpec
from tests.cli.planner.asking import ask
from tests.docs.pages import pages
from tests.sim.caches.test_hit_rates import PUBLISHED
from tests.sim.serving.yardstick import DYNOSIM, H200, LINEAR, TRACE, splits

PAGE = next(page for page in pages() if page.name == "docs/reference/yardsticks.md")
SCENARIO = yaml.safe_load(next(fence.text for fence in PAGE.fences if fence.language == "yaml"))


def shown(title: str) -> dict[str, list[float]]:
    """Figures of each row of a table."""
    return {row[0]: [float(cell.replace(",", "")) for cell in row[1:]] for row in PAGE.rows(title)}


def answered(rule: str, square: float) -> dict[str, float]:
    """The scenario of the page with another rule, on the whole log."""
    scenario: dict[str, Any] = {**SCENARIO, "routing": {"rule": rule}}
    scenario["model"] = {
        **SCENARIO["model"],
        "constants": {**SCENARIO["model"]["constants"], "prefillSquare": square},
    }
    (run,) = ask(
        "simulate", "-", "--trace", str(TRACE), "-o", "json", stdin=yaml.safe_dump(scenario)
    ).document["runs"]
    times = next(found["latencies"] for found in run["classes"] if found["requests"])
    return {
        "mean TTFT": times["ttft"]["meanNs"] / 1e6,
        "p99 TTFT": times["ttft"]["p99Ns"] / 1e6,
        "mean end to end": times["e2E"]["meanNs"] / 1e6,
        "prefix reuse": 100 * run["totals"]["hitShare"],
    }


@pytest.mark.parametrize(("column", "has_square"), [(1, True), (2, False)])
def test_the_page_tells_what_routers_come_to_and_the_order_is_that_of_dynosim(
    column: int, has_square: bool
) -> None:
    rows = shown("Routers")
    square = SCENARIO["model"]["constants"]["prefillSquare"] if has_square else 0.0
    names = {"RoundRobin": "round robin", "Dynamo": "router by KV"}
    found = {rule: answered(rule, square) for rule in names}
    for what, plain in found["RoundRobin"].items():
        by_kv = found["Dynamo"][what]
        unit = "%" if what == "prefix reuse" else "ms"
        first = rows[f"{what}, {names['RoundRobin']}, {unit}"]
        second = rows[f"{what}, {names['Dynamo']}, {unit}"]
        digits = 1 if unit == "%" else 0
        assert (first[column], second[column]) == (round(plain, digits), round(by_kv, digits))
        assert (first[0] < second[0]) == (plain < by_kv)


@pytest.mark.parametrize(
    ("column", "spec", "bytes_per_token"), [(1, DYNOSIM, 131_072), (2, LINEAR, 131_072), (3, H200, 147_456)]
)
def test_the_page_tells_what_splits_come_to_and_the_best_and_the_worst_are_those_of_dynosim(
    column: int, spec: InstanceSpec, bytes_per_token: int
) -> None:
    rows = shown("Prefill to decode")
    found = splits(spec, bytes_per_token, speed_up=2.0)
    assert {split: row[column] for split, row in rows.items()} == {
        split: round(mean) for split, mean in found.items()
    }
    theirs = sorted(rows, key=lambda split: rows[split][0])
    ours = sorted(rows, key=lambda split: rows[split][column])
    assert (ours[0], ours[-1]) == (theirs[0], theirs[-1]) == ("3:2", "1:4")
    assert column != 1 or ours == theirs


def test_the_hit_rates_of_the_page_are_those_that_the_cache_core_is_held_to() -> None:
    for gib, conversation, synthetic in PAGE.rows("Hit rates"):
        for name, cell in (("conversation", conversation), ("synthetic", synthetic)):
            rates = {row[0]: row[1:] for row in PUBLISHED[name]}.get(int(gib.replace(",", "")))
            told = " / ".join(map(str, rates)) if rates else "all that can be found"
            assert cell == told
