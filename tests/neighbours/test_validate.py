"""`kvpool simulate validate`: the simulator against a real Mooncake store, on the same requests."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kvpool.cli.faults import CliError
from kvpool.cli.planner import kvpool
from kvpool.cli.planning.validating.comparison import simulated_hits
from kvpool.cli.planning.validating.replay import Store, replayed
from kvpool.sim.streams import Stream
from kvpool.sim.workloads.own import written
from kvpool.sim.workloads.request import Request, Workload
from tests.harness.waiting import wait_until
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

    done: list[int] = []

    there = replayed(
        Store(MEMORY_BYTES, BLOCK_BYTES, disk=False),
        [request.blocks for request in workload.requests],
        done.append,
    )

    simulated = simulated_hits(workload, MEMORY_BYTES // BLOCK_BYTES, disk=False)
    assert ((there.memory,), there.prefix, there.wrong_bytes) == (simulated.found, simulated.prefix, 0)
    assert sum(done) == 200


def test_what_the_client_cannot_do_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    # Mooncake refuses a segment of one byte.
    with pytest.raises(CliError, match=r"could not join .* with 1 bytes: code -\d+"):
        replayed(Store(1, BLOCK_BYTES, disk=False), [(1,)], lambda _: None)

    assert not multiprocessing.active_children()


def test_the_last_words_of_a_client_that_fails_are_told() -> None:
    no_prompts: Any = [None]
    with pytest.raises(CliError, match=r"(?s)exit code 1; its last words: .*TypeError"):
        replayed(Store(MEMORY_BYTES, BLOCK_BYTES, disk=False), no_prompts, lambda _: None)


def test_a_run_that_is_ended_leaves_no_master_behind(tmp_path: Path) -> None:
    trace = tmp_path / "documents.jsonl"
    trace.write_text("".join(written(documents(requests=50_000, count=500))))
    command = "from kvpool.cli.planner import main; main()"
    arguments = ["simulate", "validate", "--trace", str(trace), "--memory", "16Mi", "--limit", "50000"]
    with subprocess.Popen(
        [sys.executable, "-c", command, *arguments], env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as run:

        def masters() -> list[str]:
            return [
                process.parent.name
                for process in Path("/proc").glob("[0-9]*/cmdline")
                if b"mooncake_master" in _command(process) and _parent(process.parent) == run.pid
            ]

        wait_until(lambda: bool(masters()), 30, "the master to start")
        started = masters()
        run.terminate()
        assert run.wait(20) == 2

    assert not any(Path("/proc", process).exists() for process in started)
    assert [path.name for path in tmp_path.iterdir()] == ["documents.jsonl"]


def _command(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
