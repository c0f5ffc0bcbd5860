"""`kvpool simulate validate`: the simulator against a real Mooncake store, on the same requests."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kvpool.cli.planner import kvpool
from kvpool.cli.planning.validating.comparison import simulated_hits
from kvpool.cli.planning.validating.store import real_store
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.own import written
from kvpool.sim.workloads.request import Request, Workload
from tests.neighbours.conftest import require_mooncake

pytestmark = pytest.mark.mooncake

MEMORY_BYTES = 16 << 20
BLOCK_BYTES = 8192


@pytest.fixture(autouse=True)
def real_mooncake() -> None:
    require_mooncake()


def documents(requests: int, count: int, seed: int = 1) -> Workload:
    """Questions about documents of 16 blocks, of which few are asked about often."""
    stream = Stream(seed)
    made = []
    for place in range(requests):
        document = int(count * stream.uniform() ** 3)
        made.append(Request(place, 16 * 512, 1, tuple(range(16 * document, 16 * document + 16))))
    return Workload(tuple(made), 512, "documents", "")


def validated(folder: Path, *flags: str) -> Any:  # noqa: ANN401 - the JSON of an answer
    # 500 documents are 8,000 blocks, and the memory holds 2,048.
    trace = folder / "documents.jsonl"
    trace.write_text("".join(written(documents(requests=900, count=500))))
    arguments = ["simulate", "validate", "--trace", str(trace), "--memory", "16Mi", "-o", "json", *flags]
    result = CliRunner().invoke(kvpool, arguments)
    (store,) = json.loads(result.stdout)["stores"]
    assert store["wrongBytes"] == 0
    return store["hitRates"]


def test_the_simulator_finds_what_a_real_store_finds_within_three_points(tmp_path: Path) -> None:
    rates = validated(tmp_path)

    assert [*rates] == ["memory", "prefix"]
    assert 0.2 < rates["memory"]["real"] < 0.8
    assert abs(rates["memory"]["errorPoints"]) < 3
    assert abs(rates["prefix"]["errorPoints"]) < 3


def test_with_a_disk_below_nothing_is_lost_and_both_agree_on_all_that_is_found(tmp_path: Path) -> None:
    rates = validated(tmp_path, "--disk")

    assert [*rates] == ["memory", "disk", "prefix"]
    assert rates["disk"]["real"] > 0.05
    # What is where depends on how soon the real store moves it; that it is there does not.
    assert abs(rates["prefix"]["errorPoints"]) < 0.5
    assert abs(rates["memory"]["errorPoints"]) < 15


def test_a_store_with_room_finds_exactly_what_was_there_before() -> None:
    workload = documents(requests=200, count=60)

    with real_store(MEMORY_BYTES, BLOCK_BYTES, disk=False) as store:
        found = [store.request(request.blocks) for request in workload.requests]

    simulated = simulated_hits(workload, MEMORY_BYTES // BLOCK_BYTES, disk=False)
    assert (sum(each.memory for each in found),) == simulated.found
    assert sum(each.prefix for each in found) == simulated.prefix
    assert store.wrong_bytes == 0
