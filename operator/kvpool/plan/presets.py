"""Cards, links and models by the names that specs give them, and the memory that a model leaves for KV."""

from collections.abc import Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, TypeVar

from kvpool.plan.timing.cards import CARDS, LINKS, Card
from kvpool.plan.timing.model import LinkModel
from kvpool.plan.timing.shapes import SHAPES, ModelShape

USABLE_SHARE: Final = Fraction(9, 10)
"""Of an accelerator's memory that engines take: vLLM's `gpu_memory_utilization` is 0.9 by default."""
ACTIVATION_BYTES: Final = 4 << 30
"""Of each accelerator, for activations and graphs."""
WEIGHT_BYTES: Final = 2
"""Of one parameter at 16 bits."""

_T = TypeVar("_T")


class UnknownPresetError(Exception):
    """A name that kvpool does not know; the text says which one was probably meant."""


def card_named(name: str) -> Card:
    """Return an accelerator. Raises UnknownPresetError."""
    return _known("accelerator", name, CARDS)


def link_named(name: str) -> LinkModel:
    """Return one direction of a link. Raises UnknownPresetError."""
    return _known("link", name, LINKS)


def shape_named(name: str) -> ModelShape:
    """Return a model. Raises UnknownPresetError."""
    return _known("model", name, SHAPES)


def _known(kind: str, name: str, known: Mapping[str, _T]) -> _T:
    if name in known:
        return known[name]
    near = get_close_matches(name, list(known), n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}"
    raise UnknownPresetError(f"spec.planning names {kind} {name}, which kvpool does not know: {hint}")


def kv_memory_bytes(shape: ModelShape, card: Card, cards: int) -> int:
    """Memory of one instance that its weights and activations leave for KV; 0 when they leave none."""
    usable = cards * (card.hbm_bytes * USABLE_SHARE - ACTIVATION_BYTES)
    return max(0, int(usable) - shape.parameters * WEIGHT_BYTES)
