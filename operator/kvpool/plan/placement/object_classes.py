"""Classes of KV objects, and the tier each of them belongs in.

A class is decided by how much of it a hit reads: an attention block is read with all its neighbours, of the
recurrent checkpoints of a sequence exactly one, whatever number is kept. Pan et al., "HiState" (arXiv
2610.41508, read second hand) places by class; the tier rule for checkpoints is kvpool's own derivation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kvpool.plan.timing.model import LinkModel

CHECKPOINT_SHARE_PERCENT: Final = 5
"""Share of the budget for the first token that reading one checkpoint may take."""


class ObjectClass(StrEnum):
    """What kind of state an object is."""

    ATTENTION_BLOCK = "AttentionBlock"
    """KV of some tokens: grows with the context, and a hit reads all that matched."""
    CHECKPOINT = "RecurrentCheckpoint"
    """State of the recurrent layers at one position: of fixed size; a hit reads one."""
    NEWEST_CHECKPOINT = "NewestCheckpoint"
    """The latest checkpoint of a live session: the next turn reads it almost surely."""
    INDEXED_LAYER = "IndexedLayer"
    """KV of layers whose read set is known ahead."""
    STEP_STATE = "StepState"
    """KV of draft layers and indexer keys: small, and every step reads it."""


@dataclass(frozen=True, slots=True)
class Tier:
    """One tier and the way from it into HBM."""

    name: str
    link: LinkModel


def tier_of(
    kind: ObjectClass,
    object_bytes: int,
    tiers: Sequence[Tier],
    ttft_ns: int,
    share_percent: int = CHECKPOINT_SHARE_PERCENT,
) -> Tier:
    """Return the tier that an object of a class belongs in. `tiers`: fastest first; the first one is HBM.

    Attention blocks enter at the top and are moved down by an eviction rule; step state stays at the top. The
    newest checkpoint and indexed layers go below it, to the first tier, if there is one. Other checkpoints go
    to the slowest tier that still reads one within `share_percent` of the budget for the first token.

    Raises:
        ValueError: when there is no tier.
    """
    if not tiers:
        raise ValueError("no tiers were given; name at least HBM")
    match kind:
        case ObjectClass.ATTENTION_BLOCK | ObjectClass.STEP_STATE:
            return tiers[0]
        case ObjectClass.NEWEST_CHECKPOINT | ObjectClass.INDEXED_LAYER:
            return tiers[min(1, len(tiers) - 1)]
        case ObjectClass.CHECKPOINT:
            within = [t for t in tiers if t.link.transfer_ns(object_bytes) * 100 <= share_percent * ttft_ns]
            return within[-1] if within else tiers[0]
