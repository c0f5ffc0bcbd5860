"""What `kvpool simulate validate` says before it starts anything."""

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner

from kvpool.cli.faults import CliError
from kvpool.cli.planner import kvpool
from kvpool.cli.planning.validating import master
from kvpool.cli.planning.validating.comparison import Comparison, Hits, simulated_hits
from kvpool.cli.views.validation import validation_screen
from kvpool.sim.workloads.request import Request, Workload


def run(*arguments: str) -> None:
    result = CliRunner().invoke(kvpool, ["simulate", "validate", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvpool.cli.planning.validate.master_binary", lambda: Path("mooncake_master"))


def test_without_mooncake_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(
        CliError, match=r"needs a real Mooncake, .* is not installed: pip install 'kvpool\[keeper\]'"
    ):
        run("--trace", "any")
    with pytest.raises(CliError, match="not installed"):
        master.master_binary()


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--memory", "20Mi"), "--memory 20Mi is 20971520 bytes, and must be a multiple of 16Mi"),
        (("--memory", "many"), "--memory: "),
        (("--memory", ","), "--memory ',' names no size"),
        (
            ("--memory", "16Mi", "--block-bytes", "64Ki"),
            "--memory 16Mi holds 256 blocks of 65536 bytes, and must hold 512",
        ),
        (("--block-bytes", "100"), "--block-bytes is 100, and must be a multiple of 64"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(flags: tuple[str, ...], told: str) -> None:
    with pytest.raises(CliError, match=told):
        run("--trace", "any", *flags)


@pytest.mark.usefixtures("installed")
def test_a_trace_without_blocks_is_refused(tmp_path: Path) -> None:
    trace = tmp_path / "azure.csv"
    trace.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,374,44\n")

    with pytest.raises(CliError, match=r"azure.csv tells no prefix blocks"):
        run("--trace", str(trace))


def test_an_error_of_more_than_three_points_and_wrong_bytes_are_findings() -> None:
    workload = Workload((Request(0, 512, 1, (1,)),), 512, "w", "")
    good = Comparison(32 << 20, 8192, Hits(1000, (400,), 380), Hits(1000, (410,), 390), 0)
    bad = Comparison(64 << 20, 8192, Hits(1000, (400, 50), 380), Hits(1000, (365, 80), 390), 3)

    assert not validation_screen(workload, [good]).findings
    assert validation_screen(workload, [good, bad]).findings == [
        "64 MiB of memory: memory is off by -3.50 points, more than 3",
        "64 MiB of memory: 3 blocks came back with bytes of others",
    ]


def test_a_prefix_ends_at_the_first_missing_block() -> None:
    requests = [
        Request(0, 1536, 1, (1, 2, 3)),
        Request(1, 1536, 1, (1, 9, 3)),
        Request(2, 1536, 1, (1, 2, 3)),
    ]

    hits = simulated_hits(Workload(tuple(requests), 512, "w", ""), 100, disk=False)

    assert (hits.lookups, hits.found, hits.prefix) == (9, (5,), 4)


def test_a_disk_keeps_what_the_memory_lets_go() -> None:
    requests = [Request(place, 512, 1, (place % 4,)) for place in range(8)]

    hits = simulated_hits(Workload(tuple(requests), 512, "w", ""), 2, disk=True)

    assert (hits.found, hits.prefix) == ((0, 4), 4)
