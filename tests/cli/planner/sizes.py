"""Options files of `kvpool size` that tests change, and what is answered."""

from __future__ import annotations

import copy
from typing import Any

import yaml

from tests.cli.planner.asking import Answered, ask

PLAIN: dict[str, Any] = {
    "model": {"preset": "Qwen3-8B"},
    "serving": {"accelerator": "H200", "price": 30_000},
    "sessions": {"context": 16_000, "returns": "10m"},
    "options": [
        {
            "name": "dram",
            "links": [{"name": "pcie", "preset": "PCIe5-x16"}],
            "tiers": [
                {"name": "DRAM", "modules": 16, "size": "64G", "path": ["pcie"], "price": 350, "watts": 9}
            ],
        }
    ],
}


def changed(**changes: object) -> dict[str, Any]:
    """PLAIN with values at dotted places, written `sessions__ttft=...`."""
    document = copy.deepcopy(PLAIN)
    for place, value in changes.items():
        *steps, last = place.split("__")
        inner: Any = document
        for step in steps:
            inner = inner[int(step)] if isinstance(inner, list) else inner[step]
        inner[last] = value
    return document


def size(document: object, *flags: str) -> Answered:
    return ask("size", "-f", "-", *flags, stdin=yaml.safe_dump(document))


def option(document: object, name: str = "dram") -> dict[str, Any]:
    answered = size(document, "-o", "json")
    found: dict[str, Any] = next(one for one in answered.document["options"] if one["name"] == name)
    return found
