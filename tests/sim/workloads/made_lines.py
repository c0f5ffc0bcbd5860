"""Lines of traces for tests, one call each."""

import json
from pathlib import Path

PUBLIC_TRACES = Path(__file__).resolve().parents[3] / "traces"
"""The public traces of this repository, each packed."""


def line(**fields: object) -> bytes:
    """Return a JSON line."""
    return json.dumps(fields).encode() + b"\n"


def mooncake(timestamp: object = 0, prompt: object = 1024, output: object = 5, ids: object = (1, 2)) -> bytes:
    """Return a request in Mooncake's form."""
    return line(timestamp=timestamp, input_length=prompt, output_length=output, hash_ids=ids)


def session(
    *requests: dict[str, object], tool_tokens: int = 0, system_tokens: int = 0, block: int = 64
) -> bytes:
    """Return a session in WEKA's form."""
    return line(
        id="trace",
        block_size=block,
        hash_id_scope="local",
        tool_tokens=tool_tokens,
        system_tokens=system_tokens,
        requests=requests,
    )


def turn(at: float, ids: list[object], prompt: int, output: int = 10, **more: object) -> dict[str, object]:
    """Return one request of a session."""
    made = {"t": at, "type": "n", "model": "m", "in": prompt, "out": output, "hash_ids": ids, "api_time": 2.0}
    return {**made, **more}
