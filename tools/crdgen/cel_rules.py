"""Checks CEL rules without a CEL compiler: what is most often wrong, and what they may cost at most.

The API server compiles the rules and estimates their cost exactly; the estimate here is coarser and meant to
fail early. Its limits are the server's: 10 million units for one rule, 100 million for a whole CRD.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kvpool.api.schema import VALIDATIONS
from tools.crdgen.columns import UnresolvedError, resolved
from tools.crdgen.finding import Finding

COST_LIMIT = 10_000_000
MESSAGE_MAX = 2048

_COMPREHENSION = re.compile(r"\.(?:all|exists|exists_one|filter|map|sortBy)\(")
_STRING_LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_STRING_OF = re.compile(r"\bstring\(")
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_CALL_COST = 10  # a call, an access and a comparison or two a step


def cel_findings(
    path: str, node: Mapping[str, Any], occurrences: int, *, correlatable: bool
) -> Iterator[Finding]:
    """What is wrong with the rules at a node that occurs up to ``occurrences`` times in one object.

    ``correlatable`` says whether the old value of the node can be told: not below atomic lists and sets.
    """
    for entry in node.get(VALIDATIONS, []):
        rule = entry.get("rule", "").strip()
        if not rule:
            yield Finding(path, "cel-empty", "the rule is empty")
            continue
        yield from _expression(path, rule)
        yield from _answer(path, entry, node)
        if "oldSelf" in _without_literals(rule) and not correlatable:
            yield Finding(path, "cel-old-self", "oldSelf is unknown below an atomic list or a set")
        cost = estimated_cost(rule, node, occurrences)
        if cost > COST_LIMIT:
            yield Finding(path, "cel-cost", f"{rule} may cost {cost} units, the limit is {COST_LIMIT}")


def estimated_cost(rule: str, node: Mapping[str, Any], occurrences: int) -> int:
    """Units the rule costs at worst: steps of its loops, times the times its node can occur."""
    steps = 1
    for _ in _COMPREHENSION.finditer(_without_literals(rule)):
        steps *= _longest_list(node)
    return steps * occurrences * _CALL_COST


def _longest_list(node: Mapping[str, Any]) -> int:
    """The largest number of items that a loop at this node can run over; unbounded counts as 10,000."""
    sizes = [1]
    if node.get("type") == "array":
        sizes.append(node.get("maxItems", 10_000))
    if "additionalProperties" in node:
        sizes.append(node.get("maxProperties", 10_000))
    sizes += [_longest_list(child) for child in node.get("properties", {}).values()]
    if isinstance(node.get("items"), Mapping):
        sizes.append(_longest_list(node["items"]))
    return max(sizes)


def _answer(path: str, entry: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[Finding]:
    """The message that a person gets, and where it points."""
    message, expression = entry.get("message", ""), entry.get("messageExpression", "")
    if not message and not expression:
        yield Finding(path, "cel-message", "the rule has no message: the server would print the expression")
    if "\n" in message or len(message) > MESSAGE_MAX:
        yield Finding(
            path, "cel-message", f"the message must be one line of at most {MESSAGE_MAX} characters"
        )
    if expression:
        yield from _expression(path, expression)
        if _STRING_OF.search(_without_literals(expression)):
            yield Finding(
                path, "cel-cost", "string(...) in a messageExpression costs too much: use '%d'.format([x])"
            )
    if field_path := entry.get("fieldPath"):
        try:
            resolved(field_path, node)
        except UnresolvedError as problem:
            yield Finding(path, "cel-field-path", str(problem))


def _expression(path: str, expression: str) -> Iterator[Finding]:
    bare = _without_literals(expression)
    if "'" in bare or '"' in bare:
        yield Finding(path, "cel-syntax", f"a quote is not closed in {expression}")
    depth: list[str] = []
    for character in bare:
        if character in _BRACKETS.values():
            depth.append(character)
        elif character in _BRACKETS and (not depth or depth.pop() != _BRACKETS[character]):
            depth = ["?"]
            break
    if depth:
        yield Finding(path, "cel-syntax", f"brackets do not match in {expression}")
    if "self" not in bare and bare != "false":  # false alone refuses a field whatever it holds
        yield Finding(path, "cel-syntax", f"{expression} says nothing about self")


def _without_literals(expression: str) -> str:
    return _STRING_LITERAL.sub("", expression)
