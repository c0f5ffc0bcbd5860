"""One instance that decodes many sequences, and brings their prefixes up over one link."""

import pytest

from kvpool.plan.placement.orders import Recency
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.tiers.accesses import Access
from kvpool.sim.tiers.batch import Instance, decode_in_batches
from kvpool.sim.tiers.exclusive import ExclusiveTiers
from kvpool.sim.workloads.generators.chat import Chat, chat
from kvpool.sim.workloads.request import Request, Workload

SECOND = 10**9
# 1 µs a prompt token; a step takes 1 ms whatever runs.
TIMING = TimingModel(0, 1000, 0, 1e6, 0, 0)
# A byte takes a nanosecond.
LINK = LinkModel(0, SECOND)


def requests(*prompts: tuple[int, tuple[int, ...]]) -> Workload:
    """(second, blocks of 512 tokens) with answers of ten tokens."""
    made = tuple(Request(at * SECOND, 512 * len(ids), 10, ids) for at, ids in prompts)
    return Workload(made, 512, "made", "")


def test_a_turn_is_prefilled_and_decoded() -> None:
    outcome = decode_in_batches(requests((0, (1,))), Instance(1, 1, 1, TIMING, LINK), Recency())
    assert list(outcome.ttft_ns) == [512_000]
    assert list(outcome.end_to_end_ns) == [512_000 + 10_000_000]
    assert outcome.link_busy_share == 0.0


def test_turns_wait_for_a_slot() -> None:
    log = requests((0, (1,)), (0, (2,)))
    one = decode_in_batches(log, Instance(1, 1, 1, TIMING, LINK), Recency())
    two = decode_in_batches(log, Instance(2, 1, 1, TIMING, LINK), Recency())
    assert list(one.ttft_ns) == [512_000, 512_000 + 10_000_000 + 512_000]
    assert list(two.ttft_ns) == [512_000, 512_000]


def test_chunks_from_below_wait_for_the_link_and_what_they_push_out_takes_it_too() -> None:
    # HBM has room for one chunk: 1 goes down for 2, and both cross when 1 is asked for again.
    log = requests((0, (1,)), (1, (2,)), (2, (1,)))
    outcome = decode_in_batches(log, Instance(1, 2, 1000, TIMING, LINK), Recency())
    chunk_ns = 512 * 1000
    assert list(outcome.ttft_ns) == [512_000, chunk_ns + 512_000, 2 * chunk_ns + 1000]
    assert outcome.flows.boundaries[0].total == 3


def test_a_faster_link_never_makes_turns_later() -> None:
    log = chat(Chat(users=60, hours=0.5), 3)
    slow, fast = (
        decode_in_batches(log, Instance(8, 25, 147_456, TIMING, LinkModel(0, rate * SECOND)), Recency())
        for rate in (5, 50)
    )
    assert fast.mean_ttft_ns < slow.mean_ttft_ns
    assert slow.link_busy_share == pytest.approx(10 * fast.link_busy_share, rel=0.2)
    assert fast.ttft_at(50) <= fast.ttft_at(99)


def test_pinned_objects_stay_at_the_top_until_the_last_pin_is_taken_out() -> None:
    tiers = ExclusiveTiers([2, 9], Recency())
    tiers.access(Access(0, (1,)))
    tiers.pin((1,))
    tiers.pin((1,))
    for item in (2, 3, 4):
        tiers.access(Access(item, (item,)))
    assert (tiers.tier_of(1), tiers.pinned) == (0, 1)
    tiers.unpin((1,), 5)
    tiers.access(Access(6, (5,)))
    assert tiers.tier_of(1) == 0
    tiers.unpin((1,), 7)
    tiers.access(Access(8, (6,)))
    assert (tiers.tier_of(1), tiers.pinned) == (1, 0)
