"""Images hold what their programs need and no more."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT

_STAGE = re.compile(r"^FROM \S+ AS (\w+)$", re.MULTILINE)
_PROGRAMS = re.compile(r"\bsubprocess\b|create_subprocess|os\.(system|exec|spawn|popen)")


def stages() -> dict[str, str]:
    parts = _STAGE.split((ROOT / "Dockerfile").read_text())
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_agents_run_no_programs_so_their_image_has_no_packages() -> None:
    sources = {path: path.read_text() for path in (ROOT / "agents" / "kvpool_agent").rglob("*.py")}
    assert sources
    assert [path for path, text in sources.items() if _PROGRAMS.search(text)] == []
    assert "apt-get" not in stages()["agent"]


def test_keepers_have_the_libraries_of_the_store_client() -> None:
    for library in ("libcurl4", "libibverbs1", "libnuma1"):
        assert library in stages()["keeper"]
