"""`kvpool simulate validate`: the simulator against a real Mooncake store, on the same requests."""

import json
from pathlib import Path

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


def test_the_simulator_finds_what_a_real_store_finds_within_two_points(tmp_path: Path) -> None:
    # 500 documents are 8,000 blocks, and the store holds 2,048.
    trace = tmp_path / "documents.jsonl"
    trace.write_text("".join(written(documents(requests=900, count=500))))

    result = CliRunner().invoke(
        kvpool, ["simulate", "validate", "--trace", str(trace), "--memory", "16Mi", "-o", "json"]
    )

    assert result.exit_code == 0, result.output
    (tier,) = json.loads(result.stdout)["tiers"]
    assert 0.2 < tier["hitRate"]["real"] < 0.8
    assert abs(tier["hitRate"]["errorPoints"]) < 2
    assert abs(tier["prefixHitRate"]["errorPoints"]) < 2
    assert tier["wrongBytes"] == 0


def test_a_store_with_room_finds_exactly_what_was_there_before() -> None:
    workload = documents(requests=200, count=60)

    with real_store(MEMORY_BYTES, BLOCK_BYTES) as store:
        found = [store.request(request.blocks) for request in workload.requests]

    simulated = simulated_hits(workload, MEMORY_BYTES // BLOCK_BYTES)
    assert sum(each.anywhere for each in found) == simulated.found
    assert sum(each.prefix for each in found) == simulated.prefix
    assert store.wrong_bytes == 0
