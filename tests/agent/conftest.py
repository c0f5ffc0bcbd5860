from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kvpool_agent.actions import ActionError
from kvpool_agent.backends.tmpfs import find_ability
from tests.agent.node import TestNode
from tests.agent.scripted_operator import Authority, ScriptedOperator

MakeNode = Callable[..., TestNode]


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def operator(authority: Authority) -> Iterator[ScriptedOperator]:
    scripted = ScriptedOperator(authority).start()
    yield scripted
    scripted.stop()


@pytest.fixture
def make_node(tmp_path: Path, operator: ScriptedOperator) -> Iterator[MakeNode]:
    """Makes nodes that talk to the scripted operator; all that they started ends with the test."""
    made: list[TestNode] = []

    def make(
        name: str = "node-1",
        *,
        devices: list[dict[str, object]] | None = None,
        tmpfs: str = "shm",
        address: str = "127.0.0.1",
        flags: tuple[str, ...] = (),
    ) -> TestNode:
        folder = tmp_path / f"{tmp_path.name}-{name}"
        node = TestNode(folder, operator, name=name, tmpfs=tmpfs, address=address, flags=flags)
        made.append(node)
        node.devices_file.write_text(json.dumps({"devices": devices or []}))
        return node

    yield make
    for node in made:
        node.close()


@pytest.fixture
def node(make_node: MakeNode) -> TestNode:
    """A node whose units are files on the shared-memory mount: needs no rights."""
    return make_node(tmpfs="shm")


@pytest.fixture
def may_mount(tmp_path: Path) -> None:
    """Skip where a tmpfs cannot be mounted."""
    try:
        find_ability("privileged", tmp_path)
    except ActionError as error:
        pytest.skip(f"needs root, or `python -m devcluster.sandbox`: {error}")


@pytest.fixture
def mounting_node(may_mount: None, make_node: MakeNode) -> TestNode:
    """A node that mounts a tmpfs for each unit."""
    return make_node(tmpfs="privileged")
