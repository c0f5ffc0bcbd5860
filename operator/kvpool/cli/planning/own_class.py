"""Classes of people's own, named as `module:Class`."""

import sys
from importlib import import_module

from kvpool.cli.faults import CliError


def own_class(text: str) -> object:
    """Return what a name stands for. Modules are looked for in the current folder too.

    Raises:
        CliError: when there is no such module, it fails, or it has no such class.
    """
    module_name, colon, class_name = text.partition(":")
    if not (module_name and colon and class_name):
        raise CliError(f"--policy {text!r}: name a class as module:Class")
    if "" not in sys.path:
        # As `python -m` does: a rule is most often a file beside the scenario or the trace.
        sys.path.insert(0, "")
    try:
        return getattr(import_module(module_name), class_name)
    except ImportError as error:
        raise CliError(f"--policy {text}: module {module_name!r} cannot be imported: {error}") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the user's own may fail in any way
        raise CliError(f"--policy {text}: {error}") from None
