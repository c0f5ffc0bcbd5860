"""Rules about where things are and how large they grow, which no other tool holds."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
IMPORT_ROOTS = (ROOT, ROOT / "operator", ROOT / "agents")
PRODUCT = (ROOT / "operator", ROOT / "agents")
GENERATED = ROOT / "operator" / "kvpool" / "wire" / "v1alpha1"
MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
# Written in parts, so that this file keeps its own rule.
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("deb", "debian", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "k8s", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
        ("docker", "io"),
    )
)


def tracked() -> list[Path]:
    """Every file that git knows or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return [
        ROOT / name for name in sorted(set(listed.stdout.split("\0"))) if name and (ROOT / name).is_file()
    ]


def python_files(*folders: Path) -> Iterator[Path]:
    for path in tracked():
        inside = any(path.is_relative_to(folder) for folder in folders)
        if path.suffix == ".py" and inside and not path.is_relative_to(GENERATED):
            yield path


def calls(tree: ast.AST, owner: str, name: str) -> list[int]:
    """Lines on which `owner.name(...)` is called."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == name
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == owner
    ]


def test_the_folder_operator_is_no_package_because_it_would_shadow_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()


@pytest.mark.parametrize("folder", IMPORT_ROOTS, ids=lambda folder: folder.name)
def test_nothing_at_an_import_root_is_named_like_a_module_of_the_standard_library(folder: Path) -> None:
    names = {
        path.stem
        for path in folder.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists() or (path / "__main__.py").exists()
    }
    assert names & set(sys.stdlib_module_names) == set()


def kopf_handlers() -> list[tuple[Path, str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every kopf handler of the product: its file, the name of its decorator, its function."""
    handlers = [
        (path, ast.unparse(decorator).partition("(")[0], node)
        for path in python_files(*PRODUCT)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in node.decorator_list
        if ast.unparse(decorator).startswith("kopf.")
    ]
    assert handlers, "no kopf handler found: this test looks in the wrong place"
    return handlers


def test_every_kopf_handler_is_async_so_that_none_runs_in_a_thread() -> None:
    threaded = [
        f"{path}:{node.lineno}" for path, _, node in kopf_handlers() if isinstance(node, ast.FunctionDef)
    ]
    assert threaded == []


def test_kopf_only_logs_in_and_brings_events_whose_handlers_wait_for_nothing() -> None:
    assert {decorator for _, decorator, _ in kopf_handlers()} == {"kopf.on.login", "kopf.on.event"}
    waiting = [
        f"{path}:{inner.lineno}"
        for path, decorator, node in kopf_handlers()
        if decorator == "kopf.on.event"
        for inner in ast.walk(node)
        if isinstance(inner, ast.Await | ast.AsyncFor | ast.AsyncWith)
    ]
    assert waiting == []


def test_the_core_is_told_the_time_and_never_asks_for_it() -> None:
    core = [ROOT / "operator" / "kvpool" / name for name in ("api", "model", "rules", "plan", "world")]
    asking = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in python_files(*core)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("now", "utcnow", "today")
    ]
    assert asking == []


def test_only_one_file_may_end_the_process_without_ceremony() -> None:
    enders = {
        path.relative_to(ROOT).as_posix()
        for path in python_files(*PRODUCT)
        if calls(ast.parse(path.read_text()), "os", "_exit")
    }
    assert enders == {"operator/kvpool/cluster/hard_exit.py"}


def test_nothing_in_the_product_blocks_its_event_loop_by_sleeping() -> None:
    sleepers = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in python_files(*PRODUCT)
        for line in calls(ast.parse(path.read_text()), "time", "sleep")
    ]
    assert sleepers == []


def test_every_python_file_is_short_enough_to_be_one_idea() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): _lines(path) for path in python_files(ROOT)}
    assert {path: lines for path, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_function_outside_tests_is_short_enough_to_be_read_at_once() -> None:
    folders = [ROOT / name for name in ("operator", "agents", "devcluster", "demo", "tools", "benchmarks")]
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": lines
        for path in python_files(*folders)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_no_file_names_a_registry_or_a_folder_of_one_machine() -> None:
    machine = ("/" + "root/", '"/' + "work/", " /" + "work/", "=/" + "work/")
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in tracked()
        for word in (*REGISTRIES, *machine)
        if word in path.read_text(errors="replace")
    ]
    assert found == []


def _lines(path: Path) -> int:
    with path.open() as stream:
        return sum(1 for _ in stream)
