"""Epochs: numbers that only grow, so that whoever comes later can be told from whoever came before.

`slot epoch = operatorEpoch * 2**20 + sequence`: one sequence for each leadership and all slots, so epochs
grow across leaders, restarts, and objects that were deleted and made again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kvpool.api import EngineSlot, KVNode, Remap
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot

SEQUENCE_BITS: Final = 20
MOST_SEQUENCES: Final = (1 << SEQUENCE_BITS) - 1
MOST_EPOCHS_AHEAD: Final = 2**20
"""How far above the leader's operator epoch another may be. Every change of leader counts one: this many lie
beyond the life of a cluster, while one object or agent that names a far larger epoch would drive the
leader's, and with it every other's, to the end of what can be counted."""


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


def named_epoch(thing: KVNode | EngineSlot | Remap) -> int:
    """Return the highest operator epoch that an object names."""
    if isinstance(thing, KVNode):
        return thing.spec.operator_epoch
    return max(thing.spec.operator_epoch, operator_epoch_of(thing.spec.epoch))


def is_believable(operator_epoch: int, mine: int) -> bool:
    """Whether some leader can have reached an operator epoch, seen from one that leads under `mine`."""
    return operator_epoch <= mine + MOST_EPOCHS_AHEAD


def believed(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with objects whose epoch no leader can have reached as unreadable.

    Nothing that is decided under an epoch below theirs could be written to them.
    """
    mine = snapshot.leadership.operator_epoch

    def is_real(thing: KVNode | EngineSlot | Remap) -> bool:
        return is_believable(named_epoch(thing), mine)

    kvnodes = {name: kvnode for name, kvnode in snapshot.kvnodes.items() if is_real(kvnode)}
    slots = {key: slot for key, slot in snapshot.slots.items() if is_real(slot)}
    remaps = {key: remap for key, remap in snapshot.remaps.items() if is_real(remap)}
    odd = {("KVNode", ObjectKey("", name)) for name in snapshot.kvnodes.keys() - kvnodes.keys()}
    odd |= {("EngineSlot", key) for key in snapshot.slots.keys() - slots.keys()}
    odd |= {("Remap", key) for key in snapshot.remaps.keys() - remaps.keys()}
    if not odd:
        return snapshot
    return replace(
        snapshot, kvnodes=kvnodes, slots=slots, remaps=remaps, unreadable=snapshot.unreadable | odd
    )


def operator_epochs_in(snapshot: Snapshot) -> Iterator[int]:
    """Every operator epoch that objects and agents name."""
    for things in (snapshot.kvnodes, snapshot.slots, snapshot.remaps):
        yield from map(named_epoch, things.values())
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
