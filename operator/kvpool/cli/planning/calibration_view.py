"""How a calibration looks: one line for each constant, and why some have no value."""

from collections.abc import Iterator, Sequence

from kvpool.cli.screen import Column, Lines, Screen, Table
from kvpool.plan.calibration.constants import Calibration, Constant
from kvpool.plan.calibration.document import to_document


def calibration_screen(calibration: Calibration, findings: Sequence[str] = ()) -> Screen:
    """All that a calibration says, for people."""
    known = [constant for constant in calibration.constants if constant.value is not None]
    table = Table(
        "Constants",
        (
            Column("CONSTANT"),
            Column("VALUE", right=True),
            Column("FROM", right=True),
            Column("TO", right=True),
            Column("SAMPLES", right=True),
            Column("SOURCE"),
        ),
        [
            (
                constant.name,
                figure(constant.value, constant.unit),
                figure(constant.low, constant.unit),
                figure(constant.high, constant.unit),
                str(constant.samples or "-"),
                constant.source.value,
            )
            for constant in known
        ],
    )
    machine = [f"{name}: {text}" for name, text in calibration.machine.items()]
    return Screen(
        (
            Lines("", [f"measured {calibration.date}", *machine]),
            table,
            Lines("Methods and remarks", list(_remarks(calibration.constants))),
        ),
        to_document(calibration),
        findings,
    )


def figure(value: float | None, unit: str) -> str:
    """A value in a size that people read; `-` for none."""
    if value is None:
        return "-"
    if unit == "bytes/s":
        return f"{value / 1e9:,.2f} GB/s"
    if unit == "bytes":
        return f"{value / 1e9:,.0f} GB"
    if unit == "flop/s":
        return f"{value / 1e12:,.0f} TFLOP/s"
    if unit == "ns":
        return f"{value / 1e6:,.3f} ms"
    return f"{value:,.4g} {unit}"


def _remarks(constants: Sequence[Constant]) -> Iterator[str]:
    for constant in constants:
        if constant.value is None:
            yield f"{constant.name}: not measured: {constant.reason}"
            continue
        parts = [part for part in (constant.method, constant.reason) if part]
        if constant.curve is not None:
            line = constant.curve.line
            parts.append(
                f"line: {line.setup_ns / 1000:,.1f} us + bytes / {line.bytes_per_second / 1e9:,.2f} GB/s, "
                f"at worst {100 * constant.curve.worst_error:.0f} % off"
            )
        yield f"{constant.name}: {'; '.join(parts)}"
