"""Reads the file of a claim: the full setting, and under `reduced` what differs in the short one."""

from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

from kvpool.cli.faults import CliError
from kvpool.cli.planning.documents import fit, read_document
from kvpool.sim.claims.experiment import Experiment

_SHIPPED: Final = files("kvpool.sim.claims").joinpath("parameters")
_REDUCED: Final = "reduced"


def setting_of(experiment: Experiment, folder: Path | None, *, reduced: bool) -> dict[str, Any]:
    """Return the parameters of a claim as the file `<number>.yaml` of a folder has them.

    Args:
        experiment: the claim.
        folder: where the files are; those that come with the package, if None.
        reduced: whether to return the short setting.

    Raises:
        CliError: when the file cannot be read, or one of its settings leaves a parameter out, has one that
            the claim does not know, or a value that does not fit.
    """
    name = f"{experiment.claim.number.lower()}.yaml"
    if folder is not None:
        return _setting(experiment, folder / name, reduced=reduced)
    with as_file(_SHIPPED.joinpath(name)) as path:
        return _setting(experiment, path, reduced=reduced)


def _setting(experiment: Experiment, path: Path, *, reduced: bool) -> dict[str, Any]:
    document = read_document(str(path))
    if not isinstance(document, Mapping):
        raise CliError(f"{path} is not a mapping: write one line KEY: VALUE for each parameter")
    full = {key: value for key, value in document.items() if key != _REDUCED}
    fit(full, experiment.parameters, str(path))
    differs = document.get(_REDUCED, {})
    if not isinstance(differs, Mapping):
        raise CliError(f"{path}: {_REDUCED} is not a mapping: write what differs in the short setting")
    short = {**full, **differs}
    fit(short, experiment.parameters, f"{path}, {_REDUCED},")
    return short if reduced else full
