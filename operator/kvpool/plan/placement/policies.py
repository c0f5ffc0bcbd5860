"""The eviction rules by the names that people write."""

from typing import Final

from kvpool.plan.nearest_name import nearest_name
from kvpool.plan.placement.classwise import LIFETIME_NS, ClassWise
from kvpool.plan.placement.eviction import EvictionRule
from kvpool.plan.placement.orders import HALF_LIFE_NS, Aged, Belady, Ewma, Frequency, Predicted, Recency

NAMES: Final = ("Recency", "Frequency", "Aged", "EWMA", "ClassWise", "Predicted", "Belady")
ALIASES: Final = {"lru": "recency", "lfu": "frequency", "optimal": "belady", "opt": "belady"}


def rule_named(
    name: str, *, half_life_ns: int = HALF_LIFE_NS, lifetime_ns: int = LIFETIME_NS
) -> EvictionRule:
    """Return a fresh rule; upper and lower case are the same, and LRU, LFU and optimal are known too.

    Raises:
        ValueError: for another name; the message has the nearest one.
    """
    asked = name.lower().replace("-", "").replace("_", "")
    match ALIASES.get(asked, asked):
        case "recency":
            return Recency()
        case "predicted":
            return Predicted()
        case "frequency":
            return Frequency()
        case "aged":
            return Aged(half_life_ns)
        case "ewma":
            return Ewma()
        case "classwise":
            return ClassWise(lifetime_ns)
        case "belady":
            return Belady()
    known = {known.lower(): known for known in NAMES} | {alias: alias.upper() for alias in ALIASES}
    near = nearest_name(asked, known)
    hint = f"did you mean {known[near]}?" if near else f"known are {', '.join(NAMES)}"
    raise ValueError(f"policy {name!r} is none; {hint}")
