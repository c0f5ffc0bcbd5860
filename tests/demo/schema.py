"""What the summary of the demonstration has to look like."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

BYTES: Schema = {"type": "integer", "minimum": 0}
COUNT: Schema = {"type": "integer", "minimum": 0}
RATE: Schema = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
TEXT: Schema = {"type": "string", "minLength": 1}
SECONDS: Schema = {"type": ["number", "null"], "minimum": 0}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "required": sorted(properties), "properties": properties}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


SUMMARY = _object(
    form={"enum": ["Processes", "RealNodes"]},
    seconds={"type": "number", "exclusiveMinimum": 0},
    pool=_object(
        tiers=_list(
            _object(name=TEXT, declared=BYTES, admitted=BYTES, bound=BYTES, used=BYTES, foreign=BYTES)
        )
    ),
    replay=_object(requests=COUNT, hitRateBefore=RATE, hitRateAfter=RATE),
    remaps=_list(
        _object(
            slot=TEXT,
            to=TEXT,
            epochBefore=COUNT,
            epochAfter=COUNT,
            kind={"enum": ["Restorative", "Voluntary"]},
            cause=TEXT,
            fenceLevel={"enum": ["ContentOnly", "Process"]},
            seconds=_object(detect=SECONDS, cordon=SECONDS, fence=SECONDS, bind=SECONDS, serving=SECONDS),
            **{"from": TEXT},
        ),
    ),
    requests=_object(sent=COUNT, failed=COUNT, failedAfterWeightZero=COUNT),
    router=_object(revision=COUNT, acknowledged={"enum": ["Observed", "Assumed"]}),
    audit=_object(foreignWritesInObserve=COUNT),
)
