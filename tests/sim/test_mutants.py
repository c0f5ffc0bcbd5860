"""Known ways to get the simulator wrong: each is put into the code, and a named test has to notice."""

# ruff: noqa: ANN401 - a mutant replaces functions of any signature

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.sim.caches import keepers, turns
from kvpool.sim.caches.first_in import first_in_hits
from kvpool.sim.caches.keepers import Marconi, OneScore
from kvpool.sim.caches.strands import NOBODY, Strands
from kvpool.sim.fabric.sharing import SharedLinks
from kvpool.sim.instances.batch import Batch
from kvpool.sim.instances.job import Job
from kvpool.sim.instances.mixed import MixedInstance
from kvpool.sim.instances.pace import Pace
from kvpool.sim.links.shared import SharedLink
from kvpool.sim.prefixes.hierarchy import Hierarchy
from kvpool.sim.prefixes.queue import RecencyQueue
from kvpool.sim.prefixes.resident import ResidentPrefixes
from kvpool.sim.prefixes.store import PrefixStore
from tests.harness.mutants import Mutant, always, instead, notice
from tests.sim.caches import test_hit_rates, test_hybrid, test_keepers
from tests.sim.fabric import test_sharing
from tests.sim.instances import test_batch
from tests.sim.links import test_shared_link
from tests.sim.prefixes import test_hierarchy, test_queue, test_resident
from tests.sim.serving import test_mixed


def _alone_on_the_link(self: Any, now_ns: int) -> None:
    if self._ends and now_ns > self._since_ns:
        self._clock += (now_ns - self._since_ns) * self._rate // NS_PER_SECOND
    self._since_ns = max(self._since_ns, now_ns)


def _shares_that_nobody_passes_on(self: Any, flows: Any) -> Any:
    return {
        number: min(self._capacities[link] / len(self._members[link]) for link in flow.path)
        for number, flow in flows.items()
    }


def _whole_stack_at_once(right: Any) -> Any:
    """Recency by blocks alone: what a use refreshes stays where it was."""
    return lambda paths, capacities: [first_in_hits(paths, capacity) for capacity in capacities]


def _everything_admitted(right: Any) -> Any:
    """Belady's rule that also keeps what comes back last of all."""
    return lambda runs, capacity: [min(hit, capacity - 1) for hit in right(runs, capacity)]


def _forgets_its_hits(right: Any) -> Any:
    def served(self: Any, strands: Any, found: Any, *args: Any) -> None:
        right(self, strands, replace(found, holder=NOBODY), *args)

    return served


def _followed_by_nobody_else(right: Any) -> Any:
    def listed(self: Any, strands: Any, strand: Any, *args: Any) -> None:
        children, strand.children = strand.children, []
        right(self, strands, strand, *args)
        strand.children = children

    return listed


def _emptied_as_little_as_it_can(right: Any) -> Any:
    return lambda strands, server, *args: right(strands, replace(server, low_percent=100), *args)


def _heads_first(right: Any) -> Any:
    return lambda self, blocks, private: right(self, tuple(reversed(blocks)), private)


def _no_room_to_grow(right: Any) -> Any:
    return lambda self, blocks, private, spare_tokens=0: right(self, blocks, private)


def _drops_all_entries(self: Any) -> Any:
    return (block for block in self._queue if not self._stale.get(block))


def _own_way_only(self: Any, found: Any) -> Any:
    return [(place, found.lower_blocks[place]) for place in (1, 0) if found.lower_blocks[place]]


def _without_growth(self: Any, count: int) -> int:
    return int(self.clock + count * self.step_ticks())


def _takes_all(self: Any, _until: int) -> Any:
    ended, self.ended = self.ended, []
    return ended


def _leaves_its_tokens(right: Any) -> Any:
    def remove(self: Any, ident: int) -> int:
        held = self.context_tokens(ident)
        left: int = right(self, ident)
        self.kv_tokens += held
        return left

    return remove


def _first_pushed_out(right: Any) -> Any:
    def preempt(self: Any) -> bool:
        self._running = dict(sorted(self._running.items(), reverse=True))
        lost: bool = right(self)
        return lost

    return preempt


def _any_number(right: Any) -> Any:
    def admit(self: Any) -> bool:
        self.most_running = 1 << 30
        admitted: bool = right(self)
        return admitted

    return admit


MUTANTS = (
    # Links
    Mutant(
        "transfers that each have the link alone",
        SharedLink,
        "_pass",
        instead(_alone_on_the_link),
        test_shared_link.test_of_two_flows_the_smaller_ends_after_twice_its_time_and_the_larger_after_both,
    ),
    Mutant(
        "a link on which time stands still until somebody comes",
        SharedLink,
        "backlog_ns",
        lambda right: lambda self, _now_ns: right(self, self._since_ns),
        test_shared_link.test_what_is_left_on_a_link_shrinks_as_time_passes_though_nobody_takes_it,
    ),
    Mutant(
        "shares of a link that a narrower flow does not pass on",
        SharedLinks,
        "_filled",
        instead(_shares_that_nobody_passes_on),
        test_sharing.test_what_one_flow_cannot_use_goes_to_the_others,
    ),
    # Caches
    Mutant(
        "uses that refresh nothing",
        test_hit_rates,
        "recency_hits",
        _whole_stack_at_once,
        test_hit_rates.test_three_rules_part_ways_on_six_requests,
    ),
    Mutant(
        "a block that is admitted though all others come back sooner",
        test_hit_rates,
        "farthest_hits",
        _everything_admitted,
        test_hit_rates.test_three_rules_part_ways_on_six_requests,
    ),
    Mutant(
        "kv that is cut under a branch",
        Strands,
        "floor",
        always(0),
        test_hybrid.test_what_a_branch_needs_is_not_cut_under_it,
    ),
    Mutant(
        "checkpoints at ends only",
        keepers,
        "admitted",
        instead(lambda _points, tokens: (tokens,)),
        test_keepers.test_marconi_takes_checkpoints_where_sequences_part_and_at_their_ends,
    ),
    Mutant(
        "a checkpoint that its hits do not refresh",
        Marconi,
        "served",
        _forgets_its_hits,
        test_keepers.test_marconi_gives_up_the_checkpoint_that_was_used_longest_ago,
    ),
    Mutant(
        "a checkpoint that several went on from, given up like any other",
        Marconi,
        "_list",
        _followed_by_nobody_else,
        test_keepers.test_marconi_keeps_the_checkpoint_that_several_sequences_went_on_from,
    ),
    Mutant(
        "sessions that always go back",
        OneScore,
        "_share_back",
        instead(property(lambda _self: 1.0)),
        test_keepers.test_the_interval_of_one_score_follows_returns_that_go_back,
    ),
    Mutant(
        "a memory that is full again with the next prompt",
        turns,
        "_shrink",
        _emptied_as_little_as_it_can,
        lambda: test_keepers.test_a_full_memory_is_emptied_to_its_lower_mark_as_far_as_its_keeper_can(
            59, 20, [25]
        ),
    ),
    # Prefixes
    Mutant(
        "heads that leave before their tails",
        ResidentPrefixes,
        "release",
        _heads_first,
        test_resident.test_tails_leave_before_heads,
    ),
    Mutant(
        "prefixes with holes",
        ResidentPrefixes,
        "match",
        instead(lambda self, blocks: sum(block in self._pins for block in blocks)),
        test_resident.test_only_the_leading_run_of_blocks_counts_as_found,
    ),
    Mutant(
        "what runs that has no room to grow",
        ResidentPrefixes,
        "acquire",
        _no_room_to_grow,
        test_resident.test_what_runs_keeps_room_to_grow_when_shared_blocks_are_let_in,
    ),
    Mutant(
        "idle blocks that a sweep loses",
        RecencyQueue,
        "_valid",
        instead(_drops_all_entries),
        test_queue.test_a_sweep_keeps_the_last_entry_of_blocks_that_are_idle_again,
    ),
    Mutant(
        "blocks that are in two exclusive tiers",
        PrefixStore,
        "brought_up",
        always(None),
        test_hierarchy.test_a_block_that_was_brought_up_leaves_an_exclusive_tier_and_stays_in_one_that_keeps_copies,
    ),
    Mutant(
        "bytes from the third tier that cross one way only",
        Hierarchy,
        "crossings",
        instead(_own_way_only),
        test_hierarchy.test_what_comes_from_a_tier_crosses_all_ways_above_it,
    ),
    # Instances
    Mutant(
        "steps that do not read what the steps before them made",
        Batch,
        "clock_after",
        instead(_without_growth),
        test_batch.test_a_sequence_alone_takes_the_sum_of_its_steps,
    ),
    Mutant(
        "whole steps of which the last does not end in time",
        test_batch,
        "whole_steps",
        lambda right: lambda span, first, growth: right(span + 1, first, growth),
        test_batch.test_steps_that_grow_are_counted_to_the_last_tick,
    ),
    Mutant(
        "sequences that end before their step does",
        Batch,
        "take",
        instead(_takes_all),
        test_batch.test_a_step_that_runs_is_told_when_it_has_ended,
    ),
    Mutant(
        "tokens of a sequence that is no longer there",
        Batch,
        "remove",
        _leaves_its_tokens,
        test_batch.test_a_sequence_that_was_taken_out_leaves_the_others_as_they_would_be_without_it,
    ),
    Mutant(
        "chunks that attend to themselves only",
        Pace,
        "chunk_ticks",
        lambda right: lambda self, _done, count: right(self, 0, count),
        test_batch.test_chunks_take_as_long_together_as_the_prompt_at_once,
    ),
    Mutant(
        "prompts that are found whole and compute nothing",
        Job,
        "usable_match",
        instead(lambda self, memory: memory.match(self.blocks) * memory.block_tokens),
        test_mixed.test_a_shared_prefix_is_computed_once_and_the_last_token_always,
    ),
    Mutant(
        "the one that joined first is pushed out",
        MixedInstance,
        "_preempt",
        _first_pushed_out,
        test_mixed.test_answers_that_outgrow_the_memory_push_out_the_one_that_joined_last,
    ),
    Mutant(
        "a batch of any size",
        MixedInstance,
        "_admit",
        _any_number,
        test_mixed.test_a_batch_holds_no_more_sequences_than_it_may,
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.fault)
def test_every_known_fault_is_noticed(mutant: Mutant) -> None:
    notice(mutant)
