"""What a Mooncake master says of its segments and keys, over its admin HTTP surface.

The master repeats used and capacity bytes of a segment *name* on each of that name's rows, so rows are
grouped and the figures taken once. A master that does not answer is unknown, never empty.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson

from kvpool.model.observations import SegmentView

DEADLINE_SECONDS: Final = 2.0
_KEY_COUNT: Final = re.compile(rb"^master_key_count(?:\{[^}]*\})? (\d+(?:\.\d+)?)", re.MULTILINE)


class StoreUnavailableError(Exception):
    """The master did not answer in time, or with something else than expected."""


@dataclass(frozen=True, slots=True)
class MasterReading:
    """One look at a master."""

    segments: tuple[SegmentView, ...]
    key_count: int | None
    """None when the master's metrics do not say."""


class MooncakeMaster:
    """Reads one master's admin surface at `address` (host:port)."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._address = address

    async def read(self) -> MasterReading:
        """Read segments and key count.

        Raises:
            StoreUnavailableError: when the master does not answer within the deadline or makes no sense.
        """
        detail = await self._get("/get_segments_detail")
        metrics = await self._get("/metrics")
        try:
            rows = orjson.loads(detail)["segments"]
            segments = group_rows(rows)
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise StoreUnavailableError(
                f"Mooncake master {self._address}: /get_segments_detail cannot be read ({error!r})"
            ) from error
        found = _KEY_COUNT.search(metrics)
        return MasterReading(segments, int(float(found[1])) if found else None)

    async def _get(self, path: str) -> bytes:
        timeout = aiohttp.ClientTimeout(total=DEADLINE_SECONDS)
        try:
            async with self._session.get(f"http://{self._address}{path}", timeout=timeout) as answer:
                body = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise StoreUnavailableError(
                f"Mooncake master {self._address}: no answer to {path} ({type(error).__name__})"
            ) from error
        if answer.status != 200:
            raise StoreUnavailableError(f"Mooncake master {self._address}: {path} answered {answer.status}")
        return body


def group_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[SegmentView, ...]:
    """One view for each segment name, in name order.

    Segments being unmounted or drained show 0 bytes and count as 0.
    """
    by_name: dict[str, SegmentView] = {}
    for row in rows:
        name = str(row["segment_name"])
        by_name[name] = SegmentView(
            name=name,
            capacity_bytes=int(row.get("allocator_capacity_bytes", 0)),
            used_bytes=int(row.get("allocator_used_bytes", 0)),
            host=name.rpartition(":")[0] or name,
        )
    return tuple(by_name[name] for name in sorted(by_name))
