"""`kvpool trace import`: what it writes, what it does not, and where the salt is."""

import errno
import json
import re
import signal
import stat
import string
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvpool.cli.faults import CliError
from kvpool.cli.planner import kvpool
from kvpool.cli.planning.trace_files import open_workload

# A trace has small letters only, so that any piece of these in it is a leak.
WORDS = st.text(alphabet=string.ascii_uppercase + "ÄÉ漢字", min_size=6, max_size=14)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(kvpool, ["trace", "import", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def a_log(folder: Path, *texts: str, name: str = "log.jsonl") -> Path:
    log = folder / name
    log.write_text(
        "".join(
            json.dumps(
                {
                    "timestamp": 1767225600 + at,
                    "user": text[:9],
                    "conversation_id": text[:7],
                    "messages": [{"role": "user", "content": text}],
                    "choices": [{"message": {"content": text}}],
                    "usage": {"prompt_tokens": max(1, len(text.encode()) // 4), "completion_tokens": 5},
                }
            )
            + "\n"
            for at, text in enumerate(texts)
        )
    )
    return log


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(texts=st.lists(st.lists(WORDS, min_size=3, max_size=12).map(" ".join), min_size=1, max_size=5))
def test_no_text_can_be_found_in_what_is_written(tmp_path: Path, texts: list[str]) -> None:
    target = tmp_path / "trace.jsonl"

    told = run(a_log(tmp_path, *texts), "--to", target, "--block-tokens", 4, "--overwrite")

    written = target.read_text() + told
    for word in " ".join(texts).split():
        for start in range(len(word) - 2):
            assert word[start : start + 3] not in written
    header, *requests = map(json.loads, target.read_text().splitlines())
    assert {*header} == {"kvpool-trace", "block_tokens", "source", "notes"}
    for request in requests:
        texts_left = {key: value for key, value in request.items() if isinstance(value, str)}
        assert re.fullmatch("[0-9a-f]{16}", texts_left.pop("client"))
        assert not texts_left


def test_token_ids_are_not_written_either(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    tokens = [*range(70_000, 70_032)]
    event = {
        "type": "BlockStored",
        "block_hashes": [4_242_424_242, 2],
        "parent_block_hash": None,
        "block_size": 16,
    }
    log.write_text(json.dumps({"ts": 5.0, "events": [{**event, "token_ids": tokens}]}) + "\n")
    target = tmp_path / "trace.jsonl"

    run(log, "--to", target)

    numbers = set(map(int, re.findall(r"\d+", target.read_text())))
    assert not numbers & {*tokens, 4_242_424_242}


def test_what_is_written_can_be_simulated(tmp_path: Path) -> None:
    target = tmp_path / "trace.jsonl"
    told = run(a_log(tmp_path, "sing, goddess, of the wrath " * 9, "sing, goddess"), "--to", target)

    workload = open_workload(target)

    assert len(workload.requests) == 2
    assert workload.block_tokens == 64
    assert workload.requests[1].arrival_ns == 1_000_000_000
    assert "2 requests in 1 s: 66 prompt and 10 output tokens" in told


def test_a_fresh_salt_is_kept_beside_for_its_owner_alone_and_used_again(tmp_path: Path) -> None:
    log = a_log(tmp_path, "sing, goddess, of the wrath " * 20)
    one, other, again = (tmp_path / name for name in ("one", "other", "again"))
    salt = tmp_path / "one.salt"

    told = run(log, "--to", one)
    run(log, "--to", other)
    run(log, "--to", again, "--salt-file", salt)

    assert stat.S_IMODE(salt.stat().st_mode) == 0o600
    assert len(salt.read_bytes()) == 32
    assert salt.read_bytes().hex() not in told
    assert "salt kept in one.salt" in told
    assert open_workload(one).requests == open_workload(again).requests
    assert open_workload(one).requests[0].blocks != open_workload(other).requests[0].blocks
    assert not (tmp_path / "again.salt").exists()
    first = one.read_text()
    run(log, "--to", one, "--overwrite")
    assert one.read_text() == first


def test_a_log_that_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("not json\n")

    with pytest.raises(CliError, match="log line 1: is not whole JSON"):
        run(log, "--to", tmp_path / "trace")

    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_a_trace_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "trace"
    target.write_text("precious")

    with pytest.raises(CliError, match="trace is already there: give another name"):
        run(a_log(tmp_path, "sing"), "--to", target)

    assert target.read_text() == "precious"


def test_neither_the_log_nor_the_salt_is_replaced_by_the_trace(tmp_path: Path) -> None:
    log = a_log(tmp_path, "sing")
    salt = tmp_path / "salt"
    salt.write_bytes(b"s" * 32)
    before = log.read_bytes()

    with pytest.raises(CliError, match="is the log itself, and would be lost"):
        run(log, "--to", log, "--overwrite")
    with pytest.raises(CliError, match="is the salt, and would be lost"):
        run(log, "--to", salt, "--salt-file", salt, "--overwrite")

    assert (log.read_bytes(), salt.read_bytes()) == (before, b"s" * 32)


def test_what_is_no_file_is_not_replaced_and_leaves_no_salt(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(CliError, match="folder is no file that can be replaced"):
        run(a_log(tmp_path, "sing"), "--to", tmp_path / "folder", "--overwrite")

    assert not (tmp_path / "folder.salt").exists()


def test_a_short_salt_is_refused(tmp_path: Path) -> None:
    (tmp_path / "salt").write_bytes(b"pepper")

    with pytest.raises(CliError, match=r"salt has 6 bytes, and must have 16 to .*make one with"):
        run(a_log(tmp_path, "sing"), "--to", tmp_path / "trace", "--salt-file", tmp_path / "salt")


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="nowhere is no folder; make it, or give another name"):
        run(tmp_path / "no-log-yet", "--to", tmp_path / "nowhere" / "trace")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_an_import_that_is_ended_while_it_reads_leaves_nothing_behind(
    tmp_path: Path, ending: signal.Signals
) -> None:
    (tmp_path / "work").mkdir()
    program = "from kvpool.cli.planner import main; main()"
    arguments = ["trace", "import", "-", "--to", str(tmp_path / "work" / "trace")]
    log = a_log(tmp_path, "sing, goddess").read_bytes() * 20_000
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        # Far more than the pipe holds: when all of it is written the command has read the most of it.
        process.stdin.write(log)
        process.stdin.flush()
        process.send_signal(ending)
        process.stdin.close()
        assert process.wait(30) != 0
    assert list((tmp_path / "work").iterdir()) == []


def test_a_trace_that_cannot_be_put_in_place_leaves_no_salt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    log = a_log(tmp_path, "sing")
    monkeypatch.setattr("kvpool.cli.planning.trace.tempfile.mkstemp", full)
    with pytest.raises(CliError, match="trace cannot be written: No space left on device"):
        run(log, "--to", tmp_path / "trace")
    assert [path.name for path in tmp_path.iterdir()] == [log.name]


def test_programs_get_the_same_figures(tmp_path: Path) -> None:
    told = json.loads(run(a_log(tmp_path, "sing, goddess " * 40), "--to", tmp_path / "trace", "-o", "json"))

    assert (told["requests"], told["prompt_tokens"], told["block_tokens"]) == (1, 140, 64)
    assert told["trace"] == "trace"
