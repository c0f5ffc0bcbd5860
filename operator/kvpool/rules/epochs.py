"""Epochs: numbers that only grow, so that whoever comes later can be told from whoever came before.

`slot epoch = operatorEpoch * 2**20 + sequence`: one sequence for each leadership and all slots, so epochs
grow across leaders, restarts, and objects that were deleted and made again.
"""

from collections.abc import Iterator
from typing import Final

from kvpool.model.snapshot import Snapshot

SEQUENCE_BITS: Final = 20
MOST_SEQUENCES: Final = (1 << SEQUENCE_BITS) - 1


def slot_epoch(operator_epoch: int, sequence: int) -> int:
    """Return the slot epoch of one leadership's `sequence`, counted from 1.

    Raises:
        ValueError: when the leadership has used up its sequences: it has to step up its operator epoch.
    """
    if not 1 <= sequence <= MOST_SEQUENCES:
        raise ValueError(
            f"sequence {sequence} of operator epoch {operator_epoch} is not in 1..{MOST_SEQUENCES}"
        )
    return (operator_epoch << SEQUENCE_BITS) + sequence


def operator_epoch_of(epoch: int) -> int:
    """Return the operator epoch under which a slot epoch was given out."""
    return epoch >> SEQUENCE_BITS


def sequence_of(epoch: int) -> int:
    """Return the sequence part of a slot epoch."""
    return epoch & MOST_SEQUENCES


def operator_epochs_in(snapshot: Snapshot) -> Iterator[int]:
    """Every operator epoch that objects and agents name."""
    for kvnode in snapshot.kvnodes.values():
        yield kvnode.spec.operator_epoch
    for slot in snapshot.slots.values():
        yield max(slot.spec.operator_epoch, operator_epoch_of(slot.spec.epoch))
    for remap in snapshot.remaps.values():
        yield max(remap.spec.operator_epoch, operator_epoch_of(remap.spec.epoch))
    for agent in snapshot.agents.values():
        yield agent.highest_operator_epoch


def next_sequence(snapshot: Snapshot) -> int:
    """Return a sequence of this leadership that no object carries and that was not given out before."""
    mine = snapshot.leadership.operator_epoch
    used = [slot.spec.epoch for slot in snapshot.slots.values()]
    used += [remap.spec.epoch for remap in snapshot.remaps.values()]
    used += [claim.epoch for kvnode in snapshot.kvnodes.values() for claim in kvnode.spec.claims]
    highest = max((sequence_of(epoch) for epoch in used if operator_epoch_of(epoch) == mine), default=0)
    return max(snapshot.leadership.next_sequence, highest + 1)
