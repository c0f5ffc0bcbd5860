"""The time of a command: read once at its edge, handed on."""

import time
from datetime import UTC, datetime

from kvpool.model.instant import Instant


def now() -> Instant:
    """This moment on both clocks."""
    return Instant(time.monotonic(), datetime.now(UTC))
