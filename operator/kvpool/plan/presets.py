"""Cards, links and models by the names that specs give them, and the memory that a model leaves for KV."""

from collections.abc import Mapping
from typing import TypeVar

from kvpool.plan.nearest_name import nearest_name
from kvpool.plan.timing.cards import CARDS, LINKS, Card
from kvpool.plan.timing.kv_memory import kv_memory_bytes
from kvpool.plan.timing.model import LinkModel
from kvpool.plan.timing.quantisation import BF16
from kvpool.plan.timing.shapes import SHAPES, ModelShape

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
    near = nearest_name(name, known)
    hint = f"did you mean {near}?" if near else f"known are {', '.join(sorted(known))}"
    raise UnknownPresetError(f"spec.planning names {kind} {name}, which kvpool does not know: {hint}")


def kv_memory_at_16_bits(shape: ModelShape, card: Card, cards: int) -> int:
    """Memory of one instance that 16-bit weights and activations leave for KV; 0 when they leave none."""
    return max(0, kv_memory_bytes(card, cards, BF16.weight_bytes(shape.parameters)))
