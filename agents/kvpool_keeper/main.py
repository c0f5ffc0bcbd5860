"""The command `kvpool-keeper`: holds one unit of memory and mounts it as a store segment."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
from pathlib import Path

import structlog

from kvpool_keeper.answer import Responder
from kvpool_keeper.keeper import Keeper
from kvpool_keeper.metrics import metrics_route

DRAIN_SECONDS = 30.0
WAIT_SECONDS = 0.2
FIRST_PROCESS = 1
"""The pid of a container's own program, in its namespace."""


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the process with a message when it is wrong."""
    parser = argparse.ArgumentParser(prog="kvpool-keeper", description=__doc__)
    parser.add_argument(
        "--unit-dir", type=Path, required=True, help="the unit's directory, made by the node's agent"
    )
    parser.add_argument(
        "--address",
        default=os.environ.get("KVPOOL_ADDRESS", "127.0.0.1"),
        help="the host's address under which other clients of the store reach this segment",
    )
    parser.add_argument("--drain-seconds", type=float, default=DRAIN_SECONDS, help="deadline of a drain")
    parser.add_argument("--metrics-port", type=int, default=-1, help="port of /metrics; -1 for none")
    return parser.parse_args(arguments)


async def live(options: argparse.Namespace) -> None:
    """Run the keeper until its unit was given back or a signal came; in a container, until a signal came.

    A container whose program ended is started again, and a first process that is not up yet is deaf to
    signals: its Pod, which is deleted just then, would last for its whole grace.
    """
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    if not await _directory_is_there(options.unit_dir, ended):
        return
    keeper = Keeper(options.unit_dir, options.address, options.drain_seconds)

    def end() -> None:
        ended.set()
        keeper.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
    if ended.is_set():
        keeper.end()
    responder = Responder({"/metrics": metrics_route(lambda: keeper.status)})
    if options.metrics_port >= 0:
        await responder.start(options.address, options.metrics_port)
    try:
        await keeper.run()
        if os.getpid() == FIRST_PROCESS:
            await ended.wait()
    finally:
        await responder.stop()


async def _directory_is_there(directory: Path, ended: asyncio.Event) -> bool:
    """Wait until the agent has made the directory and given it to this user; False when a signal came."""
    while not ended.is_set():
        if os.access(directory, os.W_OK | os.X_OK):
            return True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await ended.wait()
    return False


def main() -> None:
    """Start here."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.JSONRenderer(),
        ]
    )
    options = parse_arguments()
    asyncio.run(live(options))


if __name__ == "__main__":
    main()
