"""`kvpool simulate validate`: the simulator against a real Mooncake store, on the same requests."""

import json
import multiprocessing
import os
import signal
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


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda one: one.name)
@pytest.mark.parametrize("disk", [False, True], ids=["memory", "disk"])
def test_a_run_that_is_ended_leaves_nothing_behind(
    tmp_path: Path, ending: signal.Signals, disk: bool
) -> None:
    trace = tmp_path / "documents.jsonl"
    trace.write_text("".join(written(documents(requests=50_000, count=500))))
    command = "from kvpool.cli.planner import main; main()"
    arguments = ["simulate", "validate", "--trace", str(trace), "--memory", "16Mi", "--limit", "50000"]
    arguments += ["--disk"] if disk else []
    with subprocess.Popen(
        [sys.executable, "-c", command, *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        folder = wait_until(
            lambda: next(iter(tmp_path.glob("kvpool-validate-*/client.log")), None), 60, "the client to start"
        )
        started = _children(run.pid)
        run.send_signal(ending)
        assert run.wait(20) == (-signal.SIGKILL if ending is signal.SIGKILL else 2)

    assert any("mooncake_master" in command for command in started.values())
    assert folder is not None
    wait_until(lambda: not any(Path("/proc", process).exists() for process in started), 20, "all to end")
    assert [path.name for path in tmp_path.iterdir()] == ["documents.jsonl"]


def _children(parent: int) -> dict[str, str]:
    """Commands of the processes that one has started, by their numbers."""
    return {
        process.parent.name: _command(process).replace(b"\0", b" ").decode(errors="replace")
        for process in Path("/proc").glob("[0-9]*/cmdline")
        if _parent(process.parent) == parent
    }


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
