"""Eviction policies as people name them: one of kvpool's own, or a class of theirs as `module:Class`."""

from kvpool.cli.faults import CliError
from kvpool.cli.planning.own_rule import EVICTION, own_rule
from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.placement.policies import rule_named
from kvpool.sim.caches.hit_rates import FirstIn, Policy


def policy_of(text: str, half_life_ns: int) -> Policy:
    """Return the policy that a name stands for.

    A class of one's own is looked for in the current folder too, and made without arguments.

    Raises:
        CliError: when there is none of that name, or the class is no eviction rule.
    """
    if ":" in text:
        return _own(text)
    if text.lower() == "fifo":
        return FirstIn()
    try:
        return rule_named(text, half_life_ns=half_life_ns)
    except ValueError as error:
        raise CliError(f"--policy: {error}; FIFO and a class of your own as module:Class work too") from None


def _own(text: str) -> EvictionRule:
    make = own_rule(text).eviction
    if make is None:
        raise CliError(f"--policy {text}: this is a routing rule; an eviction rule has `key`; {EVICTION}")
    return make()
