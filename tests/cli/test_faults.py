"""Expected faults end with one message and exit code 2, in bounded time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest
import yaml

from devcluster.controlplane import ControlPlane
from tests.cli.conftest import PLUGIN, run_plugin


def kubeconfig(server: str, folder: Path, namespace: str = "default") -> Path:
    """A kubeconfig with one context and no credentials."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "main", "cluster": {"server": server}}],
        "users": [{"name": "main", "user": {"token": "none"}}],
        "contexts": [
            {"name": "main", "context": {"cluster": "main", "user": "main", "namespace": namespace}}
        ],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def test_an_api_server_that_refuses_connections_is_named(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = kubeconfig(f"https://127.0.0.1:{port}", tmp_path)
    ran = run_plugin("status", "--kubeconfig", str(path))
    assert ran.code == 2
    assert ran.err.startswith(f"error: the API server did not answer ({path}, context main): ")
    assert f"127.0.0.1:{port}" in ran.err
    assert ran.err.count("\n") == 1, "one message, and nothing about what else went wrong on the way"


def test_an_api_server_that_never_answers_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        path = kubeconfig(f"http://127.0.0.1:{silent.getsockname()[1]}", tmp_path)
        started = time.monotonic()
        ran = run_plugin("status", "--kubeconfig", str(path), "--timeout", "1s")
        assert time.monotonic() - started < 15
    assert ran.code == 2
    assert "not done within 1 s: the API server is slow or does not answer" in ran.err


def test_a_broken_kubeconfig_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text("contexts: [\n")
    ran = run_plugin("status", "--kubeconfig", str(path))
    assert ran.code == 2
    assert ran.err.startswith(f"error: kubeconfig {path} cannot be read: ")
    path.write_text("just text\n")
    ran = run_plugin("status", "--kubeconfig", str(path))
    assert (ran.code, ran.err) == (
        2,
        f"error: kubeconfig {path} is no kubeconfig: it should have contexts, clusters and users\n",
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("contexts: 5", "contexts should be a list of entries with a name and a context"),
        ("contexts: {a: b}", "contexts should be a list of entries with a name and a context"),
        ("contexts: [{name: a, context: 5}]", "contexts should be a list"),
        ("contexts: [{name: [a]}]", "contexts should be a list"),
        ("clusters: 5", "clusters should be a list of entries with a name and a cluster"),
        ("users: [x]", "users should be a list of entries with a name and a user"),
        ("a: 1\n---\nb: 2", "is no kubeconfig"),
        ("", "is no kubeconfig"),
        ("users: []\nusers: []", "'users' is given twice, in line 1 and in line 2"),
        ("[" * 100_000, "it is nested too deeply"),
        ("a: 2020-99-99", "line 1: a value is not what its form or tag says"),
        (
            """{current-context: a, clusters: [{name: x, cluster: {server: 5}}], users: [{name: y}],
            contexts: [{name: a, context: {cluster: x, user: y}}]}""",
            "the credentials of",
        ),
    ],
)
def test_what_is_no_kubeconfig_is_told(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    ran = run_plugin("status", "--kubeconfig", str(path))
    assert ran.code == 2
    assert ran.err.startswith("error: ")
    assert str(path) in ran.err
    assert told in ran.err
    assert ran.err.count("\n") == 1


def test_a_missing_kubeconfig_and_an_unknown_context_are_told(tmp_path: Path) -> None:
    ran = run_plugin("status", "--kubeconfig", str(tmp_path / "none"))
    assert (ran.code, ran.err) == (2, f"error: --kubeconfig {tmp_path / 'none'} is no file\n")
    path = kubeconfig("https://127.0.0.1:1", tmp_path)
    ran = run_plugin("status", "--kubeconfig", str(path), "--context", "staging")
    assert ran.code == 2
    assert f"context 'staging' is not in {path} (its contexts: main)" in ran.err
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    ran = run_plugin("status", environment=environment)
    assert ran.code == 2
    assert "give --kubeconfig" in ran.err


def test_credentials_that_are_not_accepted_are_told(kvpool_plane: ControlPlane, tmp_path: Path) -> None:
    content = yaml.safe_load(kvpool_plane.kubeconfig.read_text())
    content["users"] = [{"name": user["name"], "user": {"token": "wrong"}} for user in content["users"]]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    ran = run_plugin("status", "--kubeconfig", str(path))
    assert ran.code == 2
    assert "the API server does not accept the credentials of" in ran.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("9" * 5000 + "h", f"'{'9' * 32}...' has more than 32 characters: write 5m or 1h30m"),
        ("9" * 400 + "h", "has more than 32 characters"),
        ("1h\n", "'1h\\n' is not a duration"),
        ("-1h", "'-1h' is below 0, and a duration is not"),
        ("0s", "must be above 0, not 0s"),
    ],
)
def test_a_time_that_is_none_is_told_for_every_flag_that_takes_one(text: str, words: str) -> None:
    for verb, flag in (("status", "--timeout"), ("timeline", "--since"), ("top", "--every")):
        ran = run_plugin(verb, flag, text)
        assert ran.code == 2
        assert ran.err.startswith(f"error: {flag}")
        assert words in ran.err


def test_unknown_verbs_and_flags_are_usage_errors() -> None:
    assert run_plugin("statsu").code == 2
    assert run_plugin("status", "-o", "xml").code == 2
    assert run_plugin("--version").out.startswith("kubectl-kvpool, version ")
    assert run_plugin().code == 2


@pytest.mark.parametrize("missing", ["orjson", "kubernetes"])
def test_a_planner_that_was_installed_alone_says_what_the_plugin_needs(missing: str) -> None:
    program = f"import sys; sys.modules[{missing!r}] = None; from kvpool.cli.kubectl import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "status"], capture_output=True, text=True, timeout=60, check=False
    )
    told = f"error: {missing} is not installed: install kvpool[cli], not kvpool alone\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def run_into(out: int | IO[str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PLUGIN, "--help"], stdout=out, stderr=subprocess.PIPE, timeout=60, check=False)


def test_an_answer_that_cannot_be_written_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [PLUGIN, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"error: the answer could not be written: [Errno 28] No space left on device\n"


def test_a_reader_that_went_away_is_no_fault_to_tell_of() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run_into(writing)
    os.close(writing)
    assert done.stderr == b""


def test_any_character_is_written_whatever_the_locale_says(tmp_path: Path) -> None:
    name = "pl\u00e4ne"
    environment = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"}
    arguments = [str(PLUGIN), "status", "--kubeconfig", str(tmp_path / name)]
    done = subprocess.run(arguments, capture_output=True, timeout=60, check=False, env=environment)
    assert done.returncode == 2
    assert f"{name} is no file" in done.stderr.decode()


def test_help_tells_the_exit_codes() -> None:
    ran = run_plugin("--help")
    assert ran.code == 0
    assert "0 fine, 1 findings, 2 wrong usage" in " ".join(ran.out.split())
