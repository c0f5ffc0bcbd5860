"""Rules of people's own for `kvpool simulate`: a class named as `module:Class`."""

import sys
from dataclasses import dataclass
from importlib import import_module

from kvpool.cli.faults import CliError
from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.routing.router import RouterFactory


@dataclass(frozen=True, slots=True)
class OwnRule:
    """One of them is set."""

    router: RouterFactory | None = None
    eviction: type[EvictionRule] | None = None


def own_rule(text: str) -> OwnRule:
    """Return the class that a name stands for: with `choose` it routes, with `key` it evicts.

    Modules are looked for in the current folder too.

    Raises:
        CliError: when there is no such class, or it has neither method.
    """
    module_name, colon, class_name = text.partition(":")
    if not (module_name and colon and class_name):
        raise CliError(f"--policy {text!r}: name a class as module:Class; rules of kvpool go in the scenario")
    if "" not in sys.path:
        # As `python -m` does: a rule is most often a file beside the scenario.
        sys.path.insert(0, "")
    try:
        found = getattr(import_module(module_name), class_name)
    except ImportError as error:
        raise CliError(f"--policy {text}: module {module_name!r} cannot be imported: {error}") from None
    except Exception as error:  # noqa: BLE001 - code of the user's own may fail in any way
        raise CliError(f"--policy {text}: {error}") from None
    if callable(getattr(found, "choose", None)):
        return OwnRule(router=found)
    if callable(getattr(found, "key", None)):
        return OwnRule(eviction=found)
    raise CliError(
        f"--policy {text}: the class has neither `choose(self, ask, instances, now_ns)`, which routes "
        "(kvpool.plan.routing.router.Router), nor `key(self, use)`, which evicts "
        "(kvpool.plan.placement.eviction.EvictionRule)"
    )
