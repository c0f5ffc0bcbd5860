"""Reads one metric from a process's own page."""

from __future__ import annotations

import re
import urllib.request

HTTP_SECONDS = 5.0


def series(url: str, name: str) -> dict[str, float]:
    """Series of one metric, `{labels}` to value. Raises OSError when the page cannot be read."""
    with urllib.request.urlopen(url, timeout=HTTP_SECONDS) as answer:
        text = answer.read().decode()
    found = re.findall(rf"^{name}(\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
    return {labelled: float(value) for labelled, value in found}
