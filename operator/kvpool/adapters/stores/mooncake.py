"""What a Mooncake master says of its segments and keys, over its admin HTTP surface.

The master repeats used and capacity bytes of a segment *name* on each of that name's rows, so rows are
grouped and the figures taken once. A master that does not answer is unknown, never empty.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import aiohttp
import orjson

from kvpool.model.observations import SegmentView

DEADLINE_SECONDS: Final = 2.0
MOST_ANSWER_BYTES: Final = 8 << 20
"""Room for some 20,000 segments; what sends more is no master."""
_MOST_BYTES: Final = 2**63 - 1
_CHUNK_BYTES: Final = 64 << 10
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
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise StoreUnavailableError(
                f"Mooncake master {self._address}: /get_segments_detail cannot be read ({error!r})"
            ) from error
        return MasterReading(segments, _key_count(metrics))

    async def _get(self, path: str) -> bytes:
        timeout = aiohttp.ClientTimeout(total=DEADLINE_SECONDS)
        try:
            url = f"http://{self._address}{path}"
            async with self._session.get(url, timeout=timeout, allow_redirects=False) as answer:
                body = await self._body(path, answer)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            # ValueError: an address that cannot be a host name, found so only when it is looked up.
            raise StoreUnavailableError(
                f"Mooncake master {self._address}: no answer to {path} ({type(error).__name__})"
            ) from error
        if answer.status != 200:
            raise StoreUnavailableError(f"Mooncake master {self._address}: {path} answered {answer.status}")
        return body

    async def _body(self, path: str, answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in answer.content.iter_chunked(_CHUNK_BYTES):
            body += chunk
            if len(body) > MOST_ANSWER_BYTES:
                raise StoreUnavailableError(
                    f"Mooncake master {self._address}: {path} answered more than {MOST_ANSWER_BYTES} bytes"
                )
        return bytes(body)


def _key_count(metrics: bytes) -> int | None:
    found = _KEY_COUNT.search(metrics)
    count = float(found[1]) if found else math.inf
    return int(count) if math.isfinite(count) else None


def _size(row: Mapping[str, Any], field: str) -> int:
    size_bytes = int(row.get(field, 0))
    if not 0 <= size_bytes <= _MOST_BYTES:
        raise ValueError(f"{field} {size_bytes} is no size")
    return size_bytes


def group_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[SegmentView, ...]:
    """One view for each segment name, in name order.

    Segments being unmounted or drained show 0 bytes and count as 0. Raises what an answer of another shape
    leads to: KeyError, OverflowError, TypeError or ValueError.
    """
    by_name: dict[str, SegmentView] = {}
    for row in rows:
        name = str(row["segment_name"])
        by_name[name] = SegmentView(
            name=name,
            capacity_bytes=_size(row, "allocator_capacity_bytes"),
            used_bytes=_size(row, "allocator_used_bytes"),
            host=name.rpartition(":")[0] or name,
        )
    return tuple(by_name[name] for name in sorted(by_name))
