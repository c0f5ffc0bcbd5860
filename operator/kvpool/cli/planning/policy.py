"""Eviction policies as people name them: one of kvpool's own, or a class of theirs as `module:Class`."""

from typing import Any, Final

from kvpool.cli.faults import CliError
from kvpool.cli.planning.own_class import own_class
from kvpool.plan.placement.eviction import EvictionRule, Use
from kvpool.plan.placement.policies import rule_named
from kvpool.sim.caches.hit_rates import FirstIn, Policy

TRIAL: Final = Use(item=0, last_ns=0, turn=1)
CONTRACT: Final = "kvpool.plan.placement.eviction.EvictionRule says what a rule has to have"


def policy_of(text: str, half_life_ns: int) -> Policy:
    """Return the policy that a name stands for.

    A class of one's own is looked for in the current folder too, made without arguments, and asked for one
    key.

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
    found: Any = own_class(text)
    try:
        made = found()
    except Exception as error:  # noqa: BLE001 - code of the user's own may fail in any way
        raise CliError(f"--policy {text}: it cannot be made without arguments: {error!r}") from None
    if not isinstance(made, EvictionRule):
        raise CliError(f"--policy {text}: the class has no method `key(self, use)`; {CONTRACT}")
    try:
        key: object = made.key(TRIAL)
    except Exception as error:  # noqa: BLE001 - code of the user's own may fail in any way
        raise CliError(f"--policy {text}: key() failed for a first use: {error!r}; {CONTRACT}") from None
    if not isinstance(key, tuple) or not key or not all(isinstance(part, int | float) for part in key):
        raise CliError(f"--policy {text}: key() gave {key!r}, not a tuple of numbers; {CONTRACT}")
    return made
