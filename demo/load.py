"""A steady stream of completion requests, each with its times and the engine that answered.

Run as `python -m demo.load --url http://HOST:PORT --out FILE`, in a process of its own so that nobody else's
work delays it; it ends on SIGTERM or after `--seconds`. Times are of the system-wide monotonic clock
(`time.monotonic()` of any process on the machine), so that requests can be set against instants noted
elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import aiohttp

from demo.neighbours.engine_headers import ENGINE_HEADER, EPOCH_HEADER
from devcluster.cache import CHECKOUT
from devcluster.process import ManagedProcess

MOST_IN_FLIGHT = 512
REQUEST_SECONDS = 10.0
NO_ANSWER = 0
NOT_SENT = -1
END_SECONDS = REQUEST_SECONDS + 2


@dataclass(frozen=True)
class SentRequest:
    """One request: its number, monotonic times in seconds, HTTP status and who answered.

    `status` is 0 when no answer came (`error` says why) and -1 when it was not sent, because too many were
    in flight. `engine` and `epoch` are empty when the answer was the gateway's own.
    """

    number: int
    sent_at: float
    finished_at: float
    status: int
    engine: str = ""
    epoch: str = ""
    error: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether a completion came back."""
        return 200 <= self.status < 300


class Load:
    """Sends one request every 1/`requests_per_second` seconds to `url`, whether earlier ones ended or not."""

    def __init__(self, url: str, *, requests_per_second: float, host: str | None = None) -> None:
        self._url = f"{url}/v1/completions"
        self._headers = {"Host": host} if host else {}
        self._interval_seconds = 1 / requests_per_second
        self._in_flight: set[asyncio.Task[SentRequest]] = set()
        self.finished: list[SentRequest] = []

    async def run(self, *, seconds: float, ended: asyncio.Event) -> None:
        """Send until `seconds` have passed or `ended` is set; then wait for those in flight."""
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        connector = aiohttp.TCPConnector(limit=MOST_IN_FLIGHT)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            started = time.monotonic()
            number = 0
            while not ended.is_set() and time.monotonic() - started < seconds:
                self._send(session, number)
                number += 1
                wait_seconds = started + number * self._interval_seconds - time.monotonic()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), max(0.0, wait_seconds))
            if self._in_flight:
                await asyncio.wait(self._in_flight)

    def _send(self, session: aiohttp.ClientSession, number: int) -> None:
        if len(self._in_flight) >= MOST_IN_FLIGHT:
            now = time.monotonic()
            message = f"{len(self._in_flight)} requests in flight already"
            self.finished.append(SentRequest(number, now, now, NOT_SENT, error=message))
            return
        task = asyncio.create_task(self._one(session, number))
        self._in_flight.add(task)
        task.add_done_callback(self._keep)

    def _keep(self, task: asyncio.Task[SentRequest]) -> None:
        self._in_flight.discard(task)
        self.finished.append(task.result())

    async def _one(self, session: aiohttp.ClientSession, number: int) -> SentRequest:
        sent_at = time.monotonic()
        body = {"model": "demo", "prompt": f"request {number}", "max_tokens": 1}
        try:
            async with session.post(self._url, json=body, headers=self._headers) as answer:
                await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            return SentRequest(number, sent_at, time.monotonic(), NO_ANSWER, error=repr(error))
        return SentRequest(
            number,
            sent_at,
            time.monotonic(),
            answer.status,
            engine=answer.headers.get(ENGINE_HEADER, ""),
            epoch=answer.headers.get(EPOCH_HEADER, ""),
        )


@dataclass(frozen=True)
class Classified:
    """Requests against one instant, by when they were *sent*; those in flight at it were sent before."""

    sent_before: int
    failed_before: int
    sent_after: int
    failed_after: int


def classify(requests: Sequence[SentRequest], *, instant: float) -> Classified:
    """Count the requests sent before and at or after `instant` (monotonic seconds), and their failures."""
    after = [request for request in requests if request.sent_at >= instant]
    failed_after = sum(not request.succeeded for request in after)
    failed = sum(not request.succeeded for request in requests)
    return Classified(
        sent_before=len(requests) - len(after),
        failed_before=failed - failed_after,
        sent_after=len(after),
        failed_after=failed_after,
    )


class LoadProcess:
    """A `Load` as a process of its own, that writes its results to `out_path` as it goes."""

    def __init__(
        self, url: str, out_path: Path, *, requests_per_second: float, host: str | None = None
    ) -> None:
        self._out_path = out_path
        arguments = ["--url", url, "--out", str(out_path.resolve()), "--rate", str(requests_per_second)]
        arguments += ["--host", host] if host else []
        command = [sys.executable, "-m", "demo.load", *arguments]
        self.process = ManagedProcess("load", command, out_path.with_suffix(".log"), cwd=CHECKOUT)

    def start(self) -> None:
        """Start sending; returns when the first answer or failure is written."""
        self.process.start()
        self.process.wait_for(lambda: bool(self.so_far()), END_SECONDS, "to send a request")

    def so_far(self) -> tuple[SentRequest, ...]:
        """Return the requests that are finished by now, in the order in which they finished."""
        if not self._out_path.exists():
            return ()
        return tuple(_parse(self._out_path.read_text()))

    def stop(self) -> tuple[SentRequest, ...]:
        """End the stream, wait for what is in flight, and return every request."""
        self.process.terminate(END_SECONDS)
        return self.so_far()


def _parse(text: str) -> Iterator[SentRequest]:
    """Read whole lines only: the last one may still be being written."""
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            yield SentRequest(**json.loads(line))


async def _run(arguments: argparse.Namespace) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    load = Load(arguments.url, requests_per_second=arguments.rate, host=arguments.host)
    with arguments.out.open("w") as out:
        sending = asyncio.create_task(load.run(seconds=arguments.seconds, ended=ended))
        while not sending.done():
            await asyncio.wait({sending}, timeout=0.2)
            for request in load.finished:
                out.write(json.dumps(asdict(request)) + "\n")
            load.finished.clear()
            out.flush()
        sending.result()


def main() -> None:
    """Send until told to end; one JSON object a line goes to `--out`."""
    parser = argparse.ArgumentParser(prog="python -m demo.load", description=__doc__)
    parser.add_argument("--url", required=True, help="the gateway, http://host:port")
    parser.add_argument("--host", help="the host name that the route expects, when it does")
    parser.add_argument("--rate", type=float, default=60.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=600.0, help="end by itself after so long")
    parser.add_argument("--out", type=Path, required=True, help="one JSON object a line, a line a request")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
