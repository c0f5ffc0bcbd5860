"""Calibrations as documents (JSON or YAML), for files that `kvpool size` names."""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from kvpool.plan.calibration.constants import Calibration, Constant, Source
from kvpool.plan.calibration.transfer_curve import Point, TransferCurve
from kvpool.plan.timing.model import LinkModel

FORMAT: Final = "kvpool-calibration/1"
MOST: Final = 1e18
"""Of any constant: rates of products, the largest, are below it; and nothing is without end."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Point(_Strict):
    size_bytes: int = Field(gt=0)
    spent_ns: int = Field(gt=0)
    low_ns: int = Field(gt=0)
    high_ns: int = Field(gt=0)
    samples: int = Field(gt=0)


class _Curve(_Strict):
    setup_ns: int = Field(ge=0, le=MOST)
    bytes_per_second: int = Field(gt=0, le=MOST)
    worst_error: float = Field(ge=0)
    points: list[_Point] = Field(min_length=1)


class _Constant(_Strict):
    name: str
    unit: str
    source: Source
    value: float | None = Field(None, ge=0, le=MOST)
    low: float | None = None
    high: float | None = None
    samples: int = 0
    method: str = ""
    reason: str = ""
    curve: _Curve | None = None


class _Document(_Strict):
    format: str
    date: str
    machine: dict[str, str]
    constants: list[_Constant]


def to_document(calibration: Calibration) -> Mapping[str, JsonValue]:
    """Write a calibration as JSON types; fields that say nothing are left out."""
    return {
        "format": FORMAT,
        "date": calibration.date,
        "machine": dict(calibration.machine),
        "constants": [_written(constant) for constant in calibration.constants],
    }


def from_document(document: object) -> Calibration:
    """Read a calibration.

    Raises:
        ValueError: when it is none; the text names the field.
    """
    try:
        read = _Document.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        given = "" if first["type"] == "missing" else f", not {first['input']!r:.40}"
        raise ValueError(f"no calibration: {where}: {first['msg']}{given}") from None
    if read.format != FORMAT:
        raise ValueError(f"no calibration that is known here: format {read.format!r}, not {FORMAT!r}")
    return Calibration(read.date, read.machine, tuple(map(_read, read.constants)))


def _written(constant: Constant) -> dict[str, JsonValue]:
    written: dict[str, JsonValue] = {
        "name": constant.name,
        "unit": constant.unit,
        "source": constant.source.value,
        "value": constant.value,
        "low": constant.low,
        "high": constant.high,
        "samples": constant.samples or None,
        "method": constant.method or None,
        "reason": constant.reason or None,
        "curve": None if constant.curve is None else _written_curve(constant.curve),
    }
    return {key: value for key, value in written.items() if value is not None}


def _written_curve(curve: TransferCurve) -> JsonValue:
    points: Sequence[JsonValue] = [
        {
            "size_bytes": point.size_bytes,
            "spent_ns": point.spent_ns,
            "low_ns": point.low_ns,
            "high_ns": point.high_ns,
            "samples": point.samples,
        }
        for point in curve.points
    ]
    return {
        "setup_ns": curve.line.setup_ns,
        "bytes_per_second": curve.line.bytes_per_second,
        "worst_error": round(curve.worst_error, 4),
        "points": list(points),
    }


def _read(constant: _Constant) -> Constant:
    return Constant(
        constant.name,
        constant.unit,
        constant.source,
        constant.value,
        constant.low,
        constant.high,
        constant.samples,
        constant.method,
        constant.reason,
        None if constant.curve is None else _read_curve(constant.curve),
    )


def _read_curve(curve: _Curve) -> TransferCurve:
    return TransferCurve(
        tuple(
            Point(point.size_bytes, point.spent_ns, point.low_ns, point.high_ns, point.samples)
            for point in curve.points
        ),
        LinkModel(curve.setup_ns, curve.bytes_per_second),
        curve.worst_error,
    )
