"""Rules of people's own, named as `module:Class`; what they answer is held against their contract."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final, TypeVar

from kvpool.cli.faults import CliError
from kvpool.cli.planning.own_class import own_class
from kvpool.plan.placement.eviction import EvictionRule, Key, Use
from kvpool.plan.routing.router import Router, RouterFactory
from kvpool.plan.routing.views import Ask, Draws, Instance

_T = TypeVar("_T")
TRIAL: Final = Use(item=0, last_ns=0, turn=1)
PAGE: Final = "'Rules of your own' in docs/how-to/simulate.md"
ROUTING: Final = f"kvpool.plan.routing.router.Router and {PAGE} say what a routing rule has to have"
EVICTION: Final = (
    f"kvpool.plan.placement.eviction.EvictionRule and {PAGE} say what an eviction rule has to have"
)


@dataclass(frozen=True, slots=True)
class OwnRule:
    """One of them is set. Both raise CliError when the class breaks its contract, or fails."""

    router: RouterFactory | None = None
    eviction: Callable[[], EvictionRule] | None = None


def own_rule(text: str) -> OwnRule:
    """Return what makes the rule that a name stands for: with `choose` it routes, with `key` it evicts.

    Raises:
        CliError: when there is no such class, it has neither method, or gives no key for a first use.
    """
    if ":" not in text:
        raise CliError(f"--policy {text!r}: name a class as module:Class; rules of kvpool go in the scenario")
    found: Any = own_class(text)
    name = text.partition(":")[2]
    if callable(getattr(found, "choose", None)):

        def router(draws: Draws) -> Router:
            return _OwnRouter(text, _made(text, f"{name}(draws)", lambda: found(draws), ROUTING))

        return OwnRule(router=router)
    if callable(getattr(found, "key", None)):

        def eviction() -> EvictionRule:
            return _OwnEviction(text, _made(text, f"{name}()", found, EVICTION))

        # A workload without prefixes would never ask, and say that all is well.
        eviction().key(TRIAL)
        return OwnRule(eviction=eviction)
    raise CliError(
        f"--policy {text}: {name} has neither `choose(self, ask, instances, now_ns)`, which routes, nor "
        f"`key(self, use)`, which evicts; {ROUTING}, {EVICTION}"
    )


def _made(text: str, call: str, make: Callable[[], _T], contract: str) -> _T:
    try:
        return make()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the user's own may fail in any way
        raise CliError(f"--policy {text}: it cannot be made as {call}: {error!r}; {contract}") from None


class _OwnRouter:
    """Asks a routing rule, and believes only what fits."""

    def __init__(self, text: str, rule: Router) -> None:
        self._text = text
        self._rule = rule

    def choose(self, ask: Ask, instances: Sequence[Instance], now_ns: int) -> int:
        """Return the place that the rule chose."""
        try:
            place: object = self._rule.choose(ask, instances, now_ns)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the user's own may fail in any way
            raise CliError(f"--policy {self._text}: choose() failed: {error!r}; {ROUTING}") from None
        if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < len(instances):
            raise CliError(
                f"--policy {self._text}: choose() returned {place!r}, not the place of one of the "
                f"{len(instances)} instances, a whole number from 0 to {len(instances) - 1}; {ROUTING}"
            )
        return place


class _OwnEviction:
    """Asks an eviction rule, and believes only what fits."""

    def __init__(self, text: str, rule: EvictionRule) -> None:
        self._text = text
        self._rule = rule

    def key(self, use: Use) -> Key:
        """Return the key that the rule gave."""
        try:
            key: object = self._rule.key(use)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - code of the user's own may fail in any way
            raise CliError(f"--policy {self._text}: key() failed: {error!r}; {EVICTION}") from None
        if not isinstance(key, tuple) or not key or not all(_orders(part) for part in key):
            raise CliError(
                f"--policy {self._text}: key() returned {key!r}, not a tuple of numbers; {EVICTION}"
            )
        return key


def _orders(part: object) -> bool:
    return isinstance(part, int) or (isinstance(part, float) and not isnan(part))
