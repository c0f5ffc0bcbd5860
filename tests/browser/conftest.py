"""One browser for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.browser import Browser, Page, program_or_skip, running_browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser without a window; the test is skipped where none is installed."""
    with running_browser(program_or_skip(), tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """An empty tab."""
    page = browser.new_page()
    yield page
    page.close()
