"""What an instance that computes prompts says of its queue, in figures that can be followed by hand."""

from __future__ import annotations

from kvpool.plan.routing.pending import Pending
from kvpool.plan.routing.views import Objective
from kvpool.plan.timing.model import LinkModel, TimingModel
from kvpool.sim.instances.job import Job
from kvpool.sim.instances.prefill import PrefillInstance
from kvpool.sim.prefixes.hierarchy import Hierarchy
from kvpool.sim.prefixes.resident import ResidentPrefixes
from kvpool.sim.workloads.request import Request

BLOCK = 16
OBJECTIVE = Objective(10**9, 10**7, 100)
TRUE, BELIEVED = TimingModel(0, 1, 0, 0, 0, 0), TimingModel(0, 2, 0, 0, 0, 0)
"""A prompt token takes 1 ns, and is taken to take 2."""


def job(number: int, prompt: int, *blocks: int) -> Job:
    return Job(number, Request(0, prompt, 7, blocks), 0, OBJECTIVE, BLOCK)


def instance() -> PrefillInstance:
    return PrefillInstance(TRUE, Hierarchy(ResidentPrefixes(10 * BLOCK, BLOCK)), LinkModel(0, 1), BELIEVED)


def test_a_queue_is_as_long_as_it_was_estimated_when_it_was_sent() -> None:
    here, first, second = instance(), job(1, 32, 1, 2), job(2, 10)
    here.send(first)
    here.send(second)
    assert (here.outstanding, here.waiting_tokens, here.backlog_ns(0)) == (2, 42, 64 + 20)
    assert here.start(100) == 132
    assert [here.backlog_ns(now) for now in (100, 120, 200)] == [32 + 20, 12 + 20, 20]
    assert (here.outstanding, here.waiting_tokens, here.busy_ns, here.computed_tokens) == (2, 42, 32, 32)
    assert here.start(110) is None
    assert here.finish() is first
    assert (here.outstanding, here.waiting_tokens, here.backlog_ns(132)) == (1, 10, 20)
    assert here.start(140) == 150
    assert here.finish() is second
    assert (here.outstanding, here.waiting_tokens, here.backlog_ns(150)) == (0, 0, 0)
    assert (here.busy_ns, here.computed_tokens) == (42, 42)


def test_what_is_here_is_computed_no_more_but_for_the_last_token() -> None:
    here, first, same = instance(), job(1, 32, 1, 2), job(2, 32, 1, 2)
    here.send(first)
    here.start(0)
    here.release(here.finish())
    here.send(same)
    # Of two whole blocks the second holds the last token.
    assert (here.waiting_tokens, here.backlog_ns(32)) == (16, 32)
    assert here.start(40) == 40 + 16
    assert (same.hit_tokens, here.computed_tokens) == (16, 32 + 16)


def test_a_prompt_whose_prefix_is_on_its_way_is_passed_over_and_then_computed_from_there() -> None:
    here, loading, other = instance(), job(1, 32, 1, 2), job(2, 10)
    loading.loads_left = 1
    here.send(loading)
    here.send(other)
    assert here.start(0) == 10
    assert here.finish() is other
    assert here.start(10) is None
    loading.loads_left, loading.brought_tokens = 0, 16
    assert here.start(20) == 20 + 16
    assert loading.hit_tokens == 16


def test_a_prompt_that_does_not_fit_waits() -> None:
    here = instance()
    here.send(job(1, 9 * BLOCK))
    here.send(job(2, 2 * BLOCK))
    here.start(0)
    first = here.finish()
    assert here.start(200) is None
    here.release(first)
    assert here.start(300) == 300 + 2 * BLOCK


def test_only_whole_blocks_are_shared_and_the_rest_is_private() -> None:
    one = job(1, 40, 1, 2, 3)
    assert (one.blocks, one.private_tokens, one.need_tokens) == ((1, 2), 8, 47)
    memory = ResidentPrefixes(10 * BLOCK, BLOCK)
    memory.acquire((1, 2), 0)
    assert one.usable_match(memory) == 32
    assert [job(1, prompt, 1, 2).usable_match(memory) for prompt in (32, 33)] == [16, 32]


def test_what_died_begins_again_and_counts_what_is_computed_twice() -> None:
    one = job(1, 40, 1, 2)
    one.context_tokens, one.left_tokens, one.first_ns, one.brought_tokens = 43, 4, 99, 16
    one.must_recompute = one.is_computed = one.is_landed = True
    one.restart()
    assert (one.recomputed_tokens, one.context_tokens, one.left_tokens) == (0, 40, 7)
    assert (one.first_ns, one.brought_tokens) == (-1, 0)
    assert (one.must_recompute, one.is_computed, one.is_landed) == (False, False, False)
    one.compute_again(16)
    assert one.recomputed_tokens == 24, "the other 16 were found elsewhere"
    one.compute_again(0)
    assert one.recomputed_tokens == 24, "each loss is counted once"


def test_what_died_a_second_time_before_it_was_computed_again_still_counts_the_first_loss() -> None:
    one = job(1, 40, 1, 2)
    one.is_computed = True
    one.restart()
    one.restart()
    one.compute_again(16)
    assert one.recomputed_tokens == 24


def test_what_died_before_its_prompt_was_computed_computes_nothing_twice() -> None:
    one = job(1, 40, 1, 2)
    one.restart()
    one.compute_again(0)
    assert one.recomputed_tokens == 0


def test_who_leaves_a_record_leaves_nothing_in_it() -> None:
    pending, one = Pending(), job(1, 40)
    one.enter(pending)
    assert (len(pending), pending.remaining_tokens()) == (1, 7)
    one.leave(pending)
    assert (len(pending), pending.broken_weight(0, 10**9)) == (0, 0)
