"""What is said of watches and lists that do not work."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from structlog.testing import capture_logs

from kvpool.cluster.rest import Rest
from kvpool.control.facts import Facts
from kvpool.control.watching import Watching
from tests.harness.faultproxy import Answer, FaultProxy
from tests.harness.waiting import wait_until_async


async def test_a_missing_right_is_in_the_log_once_and_ends_with_a_word(
    rest: Rest, facts: Facts, namespace: str, proxy: FaultProxy
) -> None:
    proxy.inject(Answer(403), times=1000, path="/remaps")
    proxy.inject(Answer(404), times=1000, path="/tierbudgets")
    watching = Watching(rest, facts.store, namespace, lambda: None)
    with capture_logs() as logs:
        task = asyncio.create_task(watching.run())

        def said(level: str) -> list[str]:
            return sorted(log["what"] for log in logs if log["log_level"] == level and "what" in log)

        async def both_wrong() -> bool:
            return said("warning") == ["list of tierbudgets.kvpool.dev", "watch of remaps.kvpool.dev"]

        await wait_until_async(both_wrong, 10, "both troubles to be said, once")
        proxy.heal()
        await wait_until_async(lambda: asyncio.sleep(0, len(said("info")) == 2), 20, "both to work again")
        await asyncio.wait_for(watching.synced(), 10)
        assert len(said("warning")) == 2
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
