"""What was measured, by name."""

from __future__ import annotations

from collections.abc import Iterator

from kvpool.plan.calibration.constants import Constant


def by_name(constants: Iterator[Constant]) -> dict[str, Constant]:
    """Constants by name; none may come twice."""
    listed = list(constants)
    found = {constant.name: constant for constant in listed}
    assert len(found) == len(listed)
    return found
