"""Rules of people's own for `kvpool simulate`: a class named as `module:Class`."""

from dataclasses import dataclass
from typing import Any

from kvpool.cli.faults import CliError
from kvpool.cli.planning.own_class import own_class
from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.routing.router import RouterFactory


@dataclass(frozen=True, slots=True)
class OwnRule:
    """One of them is set."""

    router: RouterFactory | None = None
    eviction: type[EvictionRule] | None = None


def own_rule(text: str) -> OwnRule:
    """Return the class that a name stands for: with `choose` it routes, with `key` it evicts.

    Raises:
        CliError: when there is no such class, or it has neither method.
    """
    if ":" not in text:
        raise CliError(f"--policy {text!r}: name a class as module:Class; rules of kvpool go in the scenario")
    found: Any = own_class(text)
    if callable(getattr(found, "choose", None)):
        return OwnRule(router=found)
    if callable(getattr(found, "key", None)):
        return OwnRule(eviction=found)
    raise CliError(
        f"--policy {text}: the class has neither `choose(self, ask, instances, now_ns)`, which routes "
        "(kvpool.plan.routing.router.Router), nor `key(self, use)`, which evicts "
        "(kvpool.plan.placement.eviction.EvictionRule)"
    )
