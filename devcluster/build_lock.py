"""One builder at a time in a cache: two of them would write one partial folder."""

from __future__ import annotations

import contextlib
import fcntl
import sys
from collections.abc import Iterator

from devcluster.cache import cache_folder


@contextlib.contextmanager
def only_builder() -> Iterator[None]:
    """Hold the cache's build lock; a second builder waits and says so, and asks again what is built."""
    with (cache_folder() / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another build is running in this cache: waiting for it", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
