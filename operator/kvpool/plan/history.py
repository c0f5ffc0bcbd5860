"""How many Remaps that are over are kept for people to read: the newest of each slot."""

from typing import Final

from kvpool.api.common import Mode
from kvpool.api.engineslot import EngineSlot
from kvpool.api.remap import Remap
from kvpool.model.decisions import DeleteRemap, Reason
from kvpool.plan.draft import Draft
from kvpool.plan.moves import attempt_of, is_open, key_of, was_cancelled_by_person

KEPT: Final = 20
"""Remaps that are over and kept, for each slot."""

MOST_DELETED: Final = 16
"""Deletions of one plan: moves never wait for a long history to go."""


def forget_old_moves(draft: Draft) -> None:
    """Delete Remaps that are over beyond the newest of each slot, as far as nothing depends on them."""
    snapshot = draft.snapshot
    if snapshot.paused or snapshot.mode_cap is not Mode.ENFORCE:
        return
    left = MOST_DELETED
    for key, slot in sorted(snapshot.slots.items()):
        over = sorted((remap for remap in draft.moves.of(key) if not is_open(remap)), key=_age, reverse=True)
        for remap in over[KEPT:]:
            if left and not _is_needed(slot, remap):
                left -= 1
                reason = Reason("HistoryFull", f"slot {key} keeps its newest {KEPT} moves")
                draft.act(DeleteRemap(key_of(remap), remap.metadata.uid, reason))


def _age(remap: Remap) -> tuple[int, int]:
    return remap.spec.epoch, attempt_of(remap)


def _is_needed(slot: EngineSlot, remap: Remap) -> bool:
    """Whether the Remap left, tried to leave, or gave the slot's present epoch; or is a person's veto."""
    present = slot.spec.epoch in (remap.spec.from_epoch, remap.spec.epoch)
    return present or was_cancelled_by_person(remap)
