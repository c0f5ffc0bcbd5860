"""Links and paths that pages name."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, Page, pages

PAGES = pages()
# Folders of the repository whose files pages name without a link.
_PATH = re.compile(
    r"^(?:operator|agents|tests|tools|crds|charts|alerts|docs|demo|devcluster|benchmarks|proto)/[\w./-]+$"
)
_TEST = re.compile(r"^(tests/\S+\.py)::(test_\w+)$")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_repository_leads_somewhere(page: Page) -> None:
    broken = []
    for target in page.links():
        file, _, anchor = target.partition("#")
        path = (page.path.parent / file).resolve() if file else page.path
        if not path.exists() or (anchor and anchor not in Page(path, path.read_text()).anchors()):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_and_test_that_a_page_names_is_there(page: Page) -> None:
    missing = []
    for text in page.commands():
        named = _TEST.match(text)
        if named is not None:
            file = ROOT / named[1]
            if not file.exists() or f"def {named[2]}(" not in file.read_text():
                missing.append(text)
        elif _PATH.match(text) and "*" not in text and not (ROOT / text).exists():
            missing.append(text)
    assert missing == []


def test_every_page_under_docs_can_be_reached_from_its_index() -> None:
    reached, open_pages = set(), [ROOT / "docs" / "README.md"]
    while open_pages:
        path = open_pages.pop()
        if path in reached or not path.is_file() or path.suffix != ".md":
            continue
        reached.add(path)
        targets = Page(path, path.read_text()).links()
        open_pages += [(path.parent / target.partition("#")[0]).resolve() for target in targets]
    assert set((ROOT / "docs").glob("**/*.md")) - reached == set()
