"""What is said of watches and lists that do not work, and how the watch of people's kinds ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from kvpool.cluster.resources import TIER_BUDGETS
from kvpool.cluster.rest import Rest
from kvpool.control.facts import Facts
from kvpool.control.people_watch import PEOPLES
from kvpool.control.watching import Watching
from tests.harness.faultproxy import Answer, Break, FaultProxy
from tests.harness.waiting import wait_until_async

END_SECONDS = 8.0


async def test_a_missing_right_is_in_the_log_once_and_ends_with_a_word(
    rest: Rest, facts: Facts, namespace: str, proxy: FaultProxy
) -> None:
    proxy.inject(Answer(403), times=1000, path="/remaps")
    proxy.inject(Answer(404), times=1, path="/tierbudgets")  # ours comes first; a second may be that of kopf
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


async def all_watched(proxy: FaultProxy) -> bool:
    """Whether a watch of each of people's kinds was asked for."""
    return all(
        any("watch=true" in seen.query for seen in proxy.seen(path=f"/{resource.plural}"))
        for resource in PEOPLES
    )


@pytest.mark.parametrize("others", ["connect again", "hear nothing"])
async def test_one_watch_of_peoples_kinds_that_fails_ends_all_of_them_and_no_task_of_others(
    rest: Rest, facts: Facts, namespace: str, proxy: FaultProxy, others: str
) -> None:
    before = asyncio.all_tasks()
    task = asyncio.create_task(Watching(rest, facts.store, namespace, lambda: None).run())
    await wait_until_async(lambda: all_watched(proxy), 20, "a watch of each of people's kinds")
    bystander = asyncio.create_task(asyncio.Event().wait())
    proxy.inject(Answer(404), times=1000, path=f"/{TIER_BUDGETS.plural}")
    if others == "hear nothing":
        proxy.inject(Break.STALL, times=1000, path="/kvpools")
    proxy.cut_open()
    with pytest.raises(ExceptionGroup, match="TaskGroup") as ended:
        await asyncio.wait_for(asyncio.shield(task), END_SECONDS)
    assert "injected by the test" in str(ended.value.exceptions)
    assert asyncio.all_tasks() - before == {bystander}
    bystander.cancel()


async def test_a_watch_that_is_cancelled_leaves_nothing_and_ends_no_task_of_others(
    rest: Rest, facts: Facts, namespace: str, proxy: FaultProxy
) -> None:
    before = asyncio.all_tasks()
    task = asyncio.create_task(Watching(rest, facts.store, namespace, lambda: None).run())
    await wait_until_async(lambda: all_watched(proxy), 20, "a watch of each of people's kinds")
    bystander = asyncio.create_task(asyncio.Event().wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), END_SECONDS)
    assert asyncio.all_tasks() - before == {bystander}
    bystander.cancel()
