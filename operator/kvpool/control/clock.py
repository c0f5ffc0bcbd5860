"""The operator's clocks: the one place in `control` that reads time."""

import time
from datetime import UTC, datetime

from kvpool.model.instant import Instant


def now() -> Instant:
    """This moment on both clocks."""
    return Instant(time.monotonic(), datetime.now(UTC))
