"""What a calibration file says instead of presets."""

from kvpool.cli.faults import CliError
from kvpool.cli.planning.suggestions import suggestion
from kvpool.plan.calibration.constants import Calibration, Constant
from kvpool.plan.calibration.document import from_document
from kvpool.plan.calibration.models import PREFILL_CONSTANTS, STEP_CONSTANTS
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.plan.timing.provenance import Constants, Provenance


class Measured:
    """The constants of one machine; without a file there are none."""

    def __init__(self, file: str | None, document: object) -> None:
        """Take the document of a calibration file.

        Raises:
            CliError: when it is no calibration.
        """
        self._file = file
        try:
            self._calibration = Calibration("", {}) if file is None else from_document(document)
        except ValueError as error:
            raise CliError(f"{file}: {error}") from None

    def link(self, name: str) -> LinkModel:
        """Return a link as it was measured.

        Raises:
            CliError: when no calibration is given, or the rate is not in it or was not measured.
        """
        if self._file is None:
            raise CliError(f"a link is measured as {name!r}: name the file in calibration")
        constants = {constant.name: constant for constant in self._calibration.constants}
        found = constants.get(name)
        if found is None:
            rates = [one.name for one in constants.values() if _is_rate(one)]
            near = suggestion(name, rates) or f"; its rates are {', '.join(rates) or 'none'}"
            raise CliError(f"{self._file} has no rate {name!r}{near}")
        if found.value is None or not _is_rate(found):
            raise CliError(f"{self._file}: {name} is no measured rate: {found.reason or found.unit}")
        if found.curve is not None:
            return found.curve.line
        if found.value < 1:
            raise CliError(f"{self._file}: {name} is {found.value:g} bytes a second: measure it again")
        return LinkModel(0, round(found.value))

    def timing(self) -> Constants | None:
        """The timing constants that were fitted on the machine; None when they are not all there."""
        values = [self._calibration.value(name) for name in (*PREFILL_CONSTANTS, *STEP_CONSTANTS)]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        source = f"{self._file} of {self._calibration.date}"
        return Constants(TimingModel(*known), Provenance.MEASURED, source)


def _is_rate(constant: Constant) -> bool:
    return constant.unit == "bytes/s"
