"""Runs kopf in this event loop, and ends it for good: all of its tasks, and none of ours.

`kopf.operator` does neither. Once a watch of its has failed, another one that was just connecting takes the
cancellation for a pause, waits for credentials that nobody brings any more, and kopf waits for it for ever.
And at its end it cancels every task that began after it, whoever's it is.
"""

import asyncio
from pathlib import Path
from typing import Final

import kopf
import structlog

_ROUND_SECONDS: Final = 1.0
_ROUNDS: Final = 10
_HOME: Final = str(Path(kopf.__file__).parent)
_log = structlog.get_logger()


async def run_kopf(
    registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, started: asyncio.Event
) -> None:
    """Run until cancelled; `started` is set when kopf has begun.

    Raises what ended kopf, RuntimeError when it ended without an error; within 10 s, whatever its tasks do.
    """
    roots = await kopf.spawn_tasks(
        registry=registry,
        settings=settings,
        clusterwide=True,
        standalone=True,
        # Unused, but without one kopf asks for the name of the user, which a container has not.
        identity="kvpool",  # type: ignore[arg-type] # a string type that kopf does not export
        ready_flag=started,
    )
    try:
        ended, _ = await asyncio.wait(roots, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _end(set(roots))
    for task in ended:
        task.result()
    raise RuntimeError("the watch of people's kinds ended")


async def _end(roots: set[asyncio.Task[None]]) -> None:
    """Let kopf tidy up, then cancel again and again what is left of it."""
    left: set[asyncio.Task[object]] = {task for task in roots if not task.done()}
    for _ in range(_ROUNDS):
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_ROUND_SECONDS)
        left = {task for task in asyncio.all_tasks() if _is_kopfs(task)}
        if not left:
            return
    _log.warning("tasks of kopf go on", tasks=sorted(task.get_name() for task in left))


def _is_kopfs(task: asyncio.Task[object]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and code.co_filename.startswith(_HOME)
