"""A real browser without a window: pages are opened, measured and photographed over its DevTools protocol.

The protocol goes over a pair of pipes, so that no port and no library for WebSockets is needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
DEADLINE_SECONDS: Final = 60.0
AT_3_AND_4: Final = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for place, end in zip((3, 4), ends):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Puts the ends of two pipes where the browser looks for them, and becomes the browser."""
FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)


class BrowserError(RuntimeError):
    """The browser refused, or said nothing in time."""


class Page:
    """One tab. What it asks for, and what it complains of, is kept."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self._browser = browser
        self._target = target
        self._session = session
        self.requests: list[str] = []
        """Addresses it has asked for."""
        self.complaints: list[str] = []
        """Words of its console, exceptions, and what was refused."""

    def show(self, file: Path, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Open a file in a window of that size, and wait until it is laid out."""
        self.requests.clear()
        self.complaints.clear()
        self._browser.forget()
        self.tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.tell("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.tell("Page.navigate", url=file.as_uri())
        self._browser.wait_for(self._session, "Page.loadEventFired")
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def value(self, script: str) -> Any:  # noqa: ANN401 - whatever JSON the script gives
        """Run a script in the page and return what it gives."""
        done = self.tell("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise BrowserError(json.dumps(done["exceptionDetails"])[:1000])
        return done["result"].get("value")

    def picture(self) -> bytes:
        """The whole page as a PNG."""
        shot = self.tell("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def paper(self) -> bytes:
        """The page as it would be printed, a PDF."""
        return base64.b64decode(self.tell("Page.printToPDF", printBackground=False)["data"])

    def close(self) -> None:
        """Close the tab."""
        self._browser.tell("Target.closeTarget", "", {"targetId": self._target})

    def tell(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send one command and return its result."""
        return self._browser.tell(method, self._session, parameters)

    def hear(self, method: str, said: dict[str, Any]) -> None:
        """Keep what the browser tells unasked."""
        if method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{said['type']}: {said['args']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.complaints.append(said["entry"]["text"])


class Browser:
    """A running browser."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to = to_browser
        self._from = from_browser
        self._number = 0
        self._rest = b""
        self._seen: list[tuple[str, str]] = []
        self._pages: dict[str, Page] = {}

    def new_page(self) -> Page:
        """Open an empty tab."""
        target = self.tell("Target.createTarget", "", {"url": "about:blank"})["targetId"]
        session = self.tell("Target.attachToTarget", "", {"targetId": target, "flatten": True})["sessionId"]
        page = self._pages[session] = Page(self, target, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.tell(f"{domain}.enable")
        return page

    def tell(self, method: str, session: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Send one command and return its result."""
        self._number += 1
        said: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            said["sessionId"] = session
        os.write(self._to, json.dumps(said).encode() + b"\0")
        end = time.monotonic() + DEADLINE_SECONDS
        while True:
            heard = self._next(end, method)
            if heard.get("id") == self._number:
                if "error" in heard:
                    raise BrowserError(f"{method}: {heard['error']}")
                result: dict[str, Any] = heard["result"]
                return result

    def wait_for(self, session: str, method: str) -> None:
        """Return when the browser has told something since it was last to forget, or tells it now."""
        end = time.monotonic() + DEADLINE_SECONDS
        while (session, method) not in self._seen:
            self._next(end, method)

    def forget(self) -> None:
        """Forget what was told until now."""
        self._seen.clear()

    def _next(self, end: float, awaited: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise BrowserError(f"no answer to {awaited} within {DEADLINE_SECONDS:.0f} s")
            got = os.read(self._from, 1 << 20)
            if not got:
                raise BrowserError(f"the browser ended before it answered {awaited}")
            self._rest += got
        message, self._rest = self._rest.split(b"\0", 1)
        heard: dict[str, Any] = json.loads(message)
        if "method" in heard:
            session = heard.get("sessionId", "")
            self._seen.append((session, heard["method"]))
            if session in self._pages:
                self._pages[session].hear(heard["method"], heard.get("params", {}))
        return heard


def program_or_skip() -> str:
    """The browser of this machine; skips the test when there is none."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip(f"needs a browser: none of {', '.join(PROGRAMS)} is installed")
    return found


@contextmanager
def running_browser(program: str, folder: Path) -> Iterator[Browser]:
    """Start a browser whose files are all below `folder`; it ends with the block."""
    heard_by_it, to_browser = os.pipe()
    from_browser, said_by_it = os.pipe()
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    command = [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", AT_3_AND_4, str(heard_by_it), str(said_by_it), *command],
        env={**os.environ, **home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(heard_by_it, said_by_it),
    )
    os.close(heard_by_it)
    os.close(said_by_it)
    try:
        yield Browser(to_browser, from_browser)
    finally:
        os.close(to_browser)
        os.close(from_browser)
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
