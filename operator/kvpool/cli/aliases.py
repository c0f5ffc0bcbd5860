"""How large a document of YAML is once its aliases are written out: a short one can stand for gigabytes."""

from typing import Final

import yaml

LIMIT_BYTES: Final = 16 * 2**20
"""Of a file, and of what it stands for."""


def check_aliases(root: yaml.Node) -> None:
    """Raise YAMLError, with the line, when written-out aliases make 16 MiB and more, or never end."""
    _length(root, {}, set())


def _length(node: yaml.Node, known: dict[int, int], open_nodes: set[int]) -> int:
    """Characters of a node that is written out, at least."""
    place = id(node)
    if place in known:
        return known[place]
    line = node.start_mark.line + 1
    if place in open_nodes:
        raise yaml.YAMLError(f"what begins in line {line} holds an alias of itself: write it out")
    open_nodes.add(place)
    total = 1
    if isinstance(node, yaml.ScalarNode):
        total += len(node.value)
    elif isinstance(node, yaml.MappingNode):
        total += sum(_length(part, known, open_nodes) for pair in node.value for part in pair)
    elif isinstance(node, yaml.SequenceNode):
        total += sum(_length(part, known, open_nodes) for part in node.value)
    open_nodes.remove(place)
    if total > LIMIT_BYTES:
        raise yaml.YAMLError(
            f"what begins in line {line} has more than {LIMIT_BYTES >> 20} MiB with its aliases written out: "
            "use fewer"
        )
    known[place] = total
    return total
