"""A block of exclusive tiers holds two slots only while a copy is under way or somebody reads the host's."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kvpool.plan.placement import exclusive
from kvpool.plan.placement.exclusive import IN_FLIGHT, Block, Place

EVENTS: list[Callable[[Block], Block]] = [
    exclusive.promote,
    exclusive.loaded,
    exclusive.load_failed,
    exclusive.evict,
    exclusive.evicted,
    exclusive.evict_failed,
    exclusive.pin_host,
    exclusive.unpin_host,
    exclusive.pin_hbm,
    exclusive.unpin_hbm,
]


def test_a_block_goes_round() -> None:
    block = Block(Place.HOST)
    seen = [block.place]
    for step in (exclusive.promote, exclusive.loaded, exclusive.evict, exclusive.evicted):
        block = step(block)
        seen.append(block.place)
    assert seen == [Place.HOST, Place.LOADING, Place.HBM, Place.EVICTING, Place.HOST]


def test_a_reader_of_the_host_copy_keeps_both_until_it_leaves() -> None:
    block = exclusive.loaded(exclusive.pin_host(exclusive.promote(Block(Place.HOST))))
    assert block.place is Place.BOTH
    assert not block.may_be_dropped
    assert exclusive.unpin_host(block).place is Place.HBM


def test_a_block_that_the_host_still_has_leaves_hbm_without_a_copy() -> None:
    both = Block(Place.BOTH, host_readers=1)
    assert exclusive.evict(both).place is Place.HOST


@pytest.mark.parametrize(
    ("block", "may"),
    [
        (Block(Place.HBM), True),
        (Block(Place.HOST), True),
        (Block(Place.LOADING), False),
        (Block(Place.EVICTING), False),
        (Block(Place.HBM, hbm_readers=1), False),
        (Block(Place.HOST, host_readers=1), False),
        (Block(Place.BOTH, host_readers=1), False),
    ],
)
def test_a_block_may_be_dropped_at_rest_when_nobody_reads_it(block: Block, may: bool) -> None:
    assert block.may_be_dropped is may


def test_readers_are_counted_on_each_side_by_itself() -> None:
    block = exclusive.pin_hbm(exclusive.pin_hbm(Block(Place.BOTH, host_readers=5)))
    assert block == Block(Place.BOTH, host_readers=5, hbm_readers=2)
    assert exclusive.unpin_hbm(block) == Block(Place.BOTH, host_readers=5, hbm_readers=1)
    assert exclusive.pin_host(block) == Block(Place.BOTH, host_readers=6, hbm_readers=2)
    assert exclusive.unpin_hbm(Block(hbm_readers=1)) == Block()


def test_the_host_slot_stays_until_the_last_reader_left_and_the_copy_arrived() -> None:
    assert exclusive.unpin_host(Block(Place.BOTH, host_readers=2)) == Block(Place.BOTH, host_readers=1)
    assert exclusive.unpin_host(Block(Place.LOADING, host_readers=1)) == Block(Place.LOADING)


def test_a_failed_copy_leaves_the_block_where_it_was() -> None:
    assert exclusive.load_failed(exclusive.promote(Block(Place.HOST))) == Block(Place.HOST)
    assert exclusive.evict_failed(exclusive.evict(Block(Place.HBM))) == Block(Place.HBM)


@pytest.mark.parametrize(
    ("step", "block", "message"),
    [
        (exclusive.promote, Block(Place.HBM), "in HBM cannot be promoted; it has to be in Host"),
        (exclusive.evict, Block(Place.HBM, hbm_readers=2), "2 readers in HBM cannot be evicted"),
        (exclusive.pin_hbm, Block(Place.EVICTING), "in Evicting cannot be read in HBM"),
        (exclusive.loaded, Block(Place.HOST), "in Host cannot be acknowledged as loaded"),
        (exclusive.load_failed, Block(Place.HBM), "in HBM cannot be given up while it loads"),
        (exclusive.evict, Block(Place.LOADING), "in Loading cannot be evicted; it has to be in HBM or Both"),
        (exclusive.evicted, Block(Place.HBM), "in HBM cannot be acknowledged as evicted"),
        (exclusive.evict_failed, Block(Place.HBM), "in HBM cannot be given up while it is evicted"),
        (exclusive.pin_host, Block(Place.HBM), "in HBM cannot be read in host memory"),
        (exclusive.unpin_hbm, Block(Place.BOTH, host_readers=1), "in Both has no reader in HBM"),
        (exclusive.unpin_host, Block(Place.HOST), "has no reader in host memory"),
        (exclusive.unpin_hbm, Block(Place.HBM), "has no reader in HBM"),
    ],
)
def test_what_cannot_be_is_refused(step: Callable[[Block], Block], block: Block, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        step(block)


class AnyOrder(RuleBasedStateMachine):
    """Events in any order, as copies are acknowledged and readers come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    @rule()
    def try_everything(self) -> None:
        """From every state that is reached each event either fits or says why not, and nothing is lost."""
        for event in EVENTS:
            try:
                after = event(self.block)
            except ValueError:
                continue
            assert after.holds_hbm or after.holds_host, f"{event.__name__} lost the block"

    for _event in EVENTS:

        def _apply(self, _event: Callable[[Block], Block] = _event) -> None:
            try:
                self.block = _event(self.block)
            except ValueError:
                return

        locals()[_event.__name__] = rule()(_apply)

    @invariant()
    def two_slots_only_in_flight_or_read(self) -> None:
        twice = self.block.holds_host and self.block.holds_hbm
        assert twice == (self.block.place in IN_FLIGHT or self.block.place is Place.BOTH)
        if self.block.place is Place.BOTH:
            assert self.block.host_readers > 0

    @invariant()
    def readers_in_hbm_have_a_slot_there(self) -> None:
        if self.block.hbm_readers:
            assert self.block.place in (Place.HBM, Place.BOTH)

    @precondition(lambda self: self.block.may_be_dropped)
    @rule()
    def dropped_and_made_again(self) -> None:
        self.block = Block()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
