"""The shapes in which KV-cache events are written as JSON, brought to one.

vLLM (and llm-d, which passes them on): batches `{"ts": seconds, "events": [...]}` or `[ts, [...], rank]`,
events as objects with `type`, or as arrays that start with it. Dynamo: `{"worker_id": 1, "event": {"data":
{"stored": ...}}}`, alone or inside `{"timestamp": ..., "event": ...}`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kvpool.sim.imports.log_fields import arrival_ns, first
from kvpool.sim.workloads.fields import text_or_number
from kvpool.sim.workloads.reading import LineError

FIELDS: Final = {
    "BlockStored": ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium"),
    "BlockRemoved": ("block_hashes", "medium"),
    "AllBlocksCleared": (),
}
"""Of the events that are arrays: what stands at which place after the type."""
MOST_BLOCK_TOKENS: Final = 65_536


@dataclass(frozen=True, slots=True)
class Stored:
    """Blocks that an engine has stored after `parent`."""

    hashes: tuple[str, ...]
    parent: str | None
    contents: tuple[str, ...] = ()
    """Hashes of the blocks' own tokens, where they are told."""
    token_ids: Sequence[int] = ()
    block_size: int | None = None
    lora: str = ""
    medium: str = ""


@dataclass(frozen=True, slots=True)
class Removed:
    """Blocks that an engine has dropped."""

    hashes: tuple[str, ...]
    medium: str = ""


@dataclass(frozen=True, slots=True)
class Cleared:
    """An engine has dropped all blocks."""


Event = Stored | Removed | Cleared


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of one worker at one time."""

    at_ns: int
    worker: str
    events: Sequence[Event]


def is_batch(value: object) -> bool:
    """Whether a line of JSON looks like events of a KV cache."""
    try:
        return _batch(value) is not None
    except LineError:
        # It looks like one, and something in it is wrong, which is told when it is read.
        return True


def events_of(value: object) -> Batch:
    """Return the events of a line. LineError if it has none, or something in them is wrong."""
    batch = _batch(value)
    if batch is None:
        raise LineError(
            "holds no KV-cache events: neither `events`, nor an `event` with `data`, nor a known `type`"
        )
    return batch


def _batch(value: object) -> Batch | None:
    if isinstance(value, list):
        if len(value) >= 2 and isinstance(value[1], list):
            rank = str(value[2]) if len(value) > 2 and value[2] is not None else ""
            return Batch(arrival_ns([{"ts": value[0]}]), rank, _events(value[1]))
        return None
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("events"), list):
        worker = "/".join(text_or_number(value, name) for name in ("worker_id", "pod", "data_parallel_rank"))
        return Batch(arrival_ns([value]), worker, _events(value["events"]))
    if _is_kind(value.get("type")):
        return Batch(arrival_ns([value]), text_or_number(value, "worker_id"), _events([value]))
    inner = value.get("event")
    if not isinstance(inner, Mapping):
        return None
    layers = [value, inner]
    if isinstance(inner.get("event"), Mapping):
        layers.append(inner["event"])
    data = first(layers, "data")
    if data is None:
        return None
    worker = next((text_or_number(layer, "worker_id") for layer in layers if "worker_id" in layer), "")
    return Batch(arrival_ns(layers), worker, [_dynamo(data)])


def _events(listed: Sequence[object]) -> list[Event]:
    found = (_event(each) for each in listed)
    return [each for each in found if each is not None]


def _event(event: object) -> Event | None:
    """Return vLLM's event; None for one of a second group of layers, which repeats the first one's blocks."""
    if isinstance(event, list) and event and _is_kind(event[0]):
        event = {"type": event[0], **dict(zip(FIELDS[event[0]], event[1:], strict=False))}
    if not isinstance(event, Mapping) or not _is_kind(event.get("type")):
        raise LineError(f"holds an event that is none of {', '.join(FIELDS)}")
    if event.get("group_idx"):
        return None
    if event["type"] == "AllBlocksCleared":
        return Cleared()
    hashes, medium = _hashes(event, "block_hashes"), str(event.get("medium") or "")
    if event["type"] == "BlockRemoved":
        return Removed(hashes, medium)
    token_ids = event.get("token_ids") or []
    if not isinstance(token_ids, list) or set(map(type, token_ids)) - {int}:
        raise LineError("`token_ids` is no list of whole numbers")
    size = event.get("block_size")
    if size is not None and (type(size) is not int or not 1 <= size <= MOST_BLOCK_TOKENS):
        raise LineError(f"`block_size` must be a whole number of tokens from 1 to {MOST_BLOCK_TOKENS}")
    lora = event.get("lora_name") or event.get("lora_id") or ""
    parent = text_or_number(event, "parent_block_hash") or None
    return Stored(hashes, parent, token_ids=token_ids, block_size=size, lora=str(lora), medium=medium)


def _is_kind(name: object) -> bool:
    return isinstance(name, str) and name in FIELDS


def _dynamo(data: object) -> Event:
    if data == "cleared" or (isinstance(data, Mapping) and "cleared" in data):
        return Cleared()
    if isinstance(data, Mapping):
        removed, stored = data.get("removed"), data.get("stored")
        if isinstance(removed, Mapping):
            return Removed(_hashes(removed, "block_hashes"))
        if isinstance(stored, Mapping):
            blocks = stored.get("blocks")
            if not isinstance(blocks, list) or not all(isinstance(each, Mapping) for each in blocks):
                raise LineError("`blocks` is no list of objects")
            hashes = tuple(text_or_number(each, "block_hash") for each in blocks)
            contents = tuple(text_or_number(each, "tokens_hash") for each in blocks)
            parent = text_or_number(stored, "parent_hash") or None
            return Stored(hashes, parent, contents if all(contents) else ())
    raise LineError("`data` is none of `stored`, `removed` and `cleared`")


def _hashes(event: Mapping[str, Any], field: str) -> tuple[str, ...]:
    listed = event.get(field)
    if not isinstance(listed, list) or any(
        isinstance(each, bool) or not isinstance(each, int | str) for each in listed
    ):
        raise LineError(f"`{field}` is no list of hashes")
    return tuple(map(str, listed))
