"""Every value of the chart does something."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.rendering import CHART, NAMESPACE, helm

DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
# So that there is something that the other values can change.
STARTING_WITH: dict[str, Any] = {
    "agent": {
        "devices": "simulated:/var/lib/kvpool/devices.json",
        "deviceResources": ["kvpool.dev/sim-accelerator"],
    },
    "monitoring": {"podMonitor": {"enabled": True}, "prometheusRule": {"enabled": True}},
}
WORDS = {
    "mode": "Enforce",
    "image.pullPolicy": "Always",
    "image.pullSecrets": [{"name": "registry"}],
    "agent.hostFolder": "/data/kvpool",
    "agent.podResources": "/data/kubelet/pod-resources",
    "agent.devices": "simulated:/elsewhere.json",
    "agent.deviceResources": ["example.com/gpu"],
    "agent.ssdFolders": ["/mnt/kv"],
    "agent.tolerations": [],
    "operator.tolerations": [{"operator": "Exists"}],
    "operator.extraServerNames": ["kvpool.example.com"],
    "keeper.cpu": "2.5",
}


def leaves_of(values: dict[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that people set as one, by its path."""
    for name, value in values.items():
        inner = isinstance(value, dict) and value and name != "resources"
        yield from leaves_of(value, f"{path}{name}.") if inner else [(f"{path}{name}", value)]


LEAVES = list(leaves_of(DEFAULTS))


def other(path: str, value: Any) -> Any:  # noqa: ANN401 - JSON
    """A value that is not the one given."""
    if path in WORDS:
        return WORDS[path]
    kinds: dict[type, Any] = {bool: not value, int: 4321, str: "other", list: ["--other"], dict: {"a": "b"}}
    if path.endswith("resources"):
        return {"limits": {"memory": "3Gi"}}
    return 3 if path in ("operator.replicas", "agent.maxUnavailable") else kinds[type(value)]


def rendered(folder: Path, *more: dict[str, Any]) -> str:
    files = []
    for index, values in enumerate((STARTING_WITH, *more)):
        file = folder / f"{index}.json"
        file.write_text(json.dumps(values))
        files += ["--values", str(file)]
    done = helm("template", "kvpool", str(CHART), "--namespace", NAMESPACE, *files)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> str:
    return rendered(tmp_path_factory.mktemp("values"))


@pytest.mark.parametrize(("path", "value"), LEAVES, ids=[path for path, _ in LEAVES])
def test_a_value_that_is_set_otherwise_renders_otherwise(
    unchanged: str,
    tmp_path: Path,
    path: str,
    value: Any,  # noqa: ANN401 - JSON
) -> None:
    changed: Any = STARTING_WITH
    for name in path.split("."):
        changed = changed.get(name, value) if isinstance(changed, dict) else value
    change = other(path, changed)
    for name in reversed(path.split(".")):
        change = {name: change}
    assert rendered(tmp_path, change) != unchanged
