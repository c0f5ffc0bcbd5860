"""A replay as a process of its own gives back its counts, its progress, or the reason why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from demo.neighbours.mooncake import MooncakeMaster
from demo.neighbours.store import SMALLEST_SEGMENT_BYTES
from demo.replay_process import ReplayFailedError, ReplayPlan, run_replay
from devcluster.ports import free_port
from tests.neighbours.conftest import LOOPBACK, StartEngine

pytestmark = pytest.mark.mooncake


def plan(mooncake: MooncakeMaster, trace: Path, **options: int) -> ReplayPlan:
    local_name = f"{LOOPBACK}:{free_port()}"
    return ReplayPlan(master=mooncake.endpoint, local_name=local_name, trace=trace, **options)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two requests of 20 blocks, of which the second repeats 15."""
    row = {"timestamp": 0, "input_length": 1, "output_length": 1}
    rows = [{**row, "hash_ids": list(range(20))}, {**row, "hash_ids": list(range(5, 25))}]
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_it_replays_into_an_existing_engines_segment_and_starts_from_empty_each_time(
    mooncake: MooncakeMaster, start_engine: StartEngine, trace: Path, tmp_path: Path
) -> None:
    start_engine(master=mooncake.endpoint, segment_bytes=SMALLEST_SEGMENT_BYTES, store_port=free_port())
    for _ in range(2):
        lines: list[str] = []
        counts = run_replay(plan(mooncake, trace, requests=2), tmp_path / "out", show=lines.append)
        assert (counts.requests, counts.lookups, counts.hits, counts.stored) == (2, 40, 15, 25)
        assert "2/2 requests, 40 look-ups, hit rate 0.3750" in lines[0]
        assert lines[-1] == "hit rate 0.3750; with room for everything it is 0.3750"
    (segment,) = mooncake.admin.segments()
    assert segment.used_bytes == 25 * 8192


def test_a_store_without_any_segment_counts_every_put_as_refused_for_lack_of_space(
    mooncake: MooncakeMaster, trace: Path, tmp_path: Path
) -> None:
    counts = run_replay(plan(mooncake, trace, requests=2), tmp_path / "out", show=lambda _line: None)
    assert (counts.hits, counts.stored) == (0, 0)
    assert counts.no_space == counts.failed_puts == 40


def test_a_replay_that_cannot_begin_says_why(mooncake: MooncakeMaster, trace: Path, tmp_path: Path) -> None:
    with pytest.raises(ReplayFailedError, match="3 requests wanted, it has 2"):
        run_replay(plan(mooncake, trace, requests=3), tmp_path / "out", show=lambda _line: None)


def test_a_replay_that_takes_too_long_is_ended(mooncake: MooncakeMaster, trace: Path, tmp_path: Path) -> None:
    with pytest.raises(ReplayFailedError, match=r"not done after 0\.05 s"):
        run_replay(
            plan(mooncake, trace, requests=2),
            tmp_path / "out",
            show=lambda _line: None,
            deadline_seconds=0.05,
        )
