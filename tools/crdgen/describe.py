"""Turns docstrings into the descriptions that ``kubectl explain`` prints."""

from __future__ import annotations

import inspect
import re

_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s")


def described(docstring: str) -> str:
    """Join wrapped lines, keep paragraphs and list items, and show code marks as in Kubernetes' own text."""
    lines: list[str] = []
    paragraph_ended = True
    for line in inspect.cleandoc(docstring).splitlines():
        text = line.strip()
        if not text:
            paragraph_ended = True
            continue
        if lines and not paragraph_ended and not _ITEM.match(text):
            lines[-1] += f" {text}"
        else:
            if lines and paragraph_ended:
                lines.append("")
            lines.append(text)
        paragraph_ended = False
    return "\n".join(lines).replace("``", "`")
