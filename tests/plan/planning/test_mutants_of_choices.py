"""Known ways to choose wrongly: each is put into the code, and a named test has to notice."""

# ruff: noqa: ANN401 - a mutant replaces functions of any signature

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from kvpool.plan.placement import exclusive, marconi, worth
from kvpool.plan.placement.classwise import ClassWise
from kvpool.plan.placement.exclusive import Place
from kvpool.plan.placement.orders import Aged, Belady, Ewma, Frequency, Recency
from kvpool.plan.ports import learning
from kvpool.plan.ports.known import PortTable
from kvpool.plan.ports.source_port import FIRST_PORT, PORT_COUNT
from kvpool.plan.ports.spines import Coordinator, least_used
from kvpool.plan.routing import completion_time, guards, shares
from kvpool.plan.routing.guards import Scarcity
from kvpool.plan.routing.pending import Pending
from kvpool.plan.sliding_window import SlidingWindow
from kvpool.plan.trajectories import admission
from tests.harness.mutants import Mutant, always, instead, notice
from tests.plan.placement import (
    test_checkpoints,
    test_classwise,
    test_eviction_orders,
    test_exclusive,
    test_marconi,
    test_reclaim_order,
)
from tests.plan.ports import test_learning, test_spines
from tests.plan.routing import (
    test_completion_time,
    test_guards,
    test_prediction,
    test_shares,
)
from tests.plan.trajectories import test_admission


def _host_slot_freed_at_once(right: Any) -> Any:
    return lambda block: replace(right(block), place=Place.HBM)


def _first_checkpoint_behind(_right: Any) -> Any:
    def usable(checkpoints: Any, matched: int) -> int:
        return next((mark for mark in checkpoints if mark >= matched), 0)

    return usable


def _scarce_without_hysteresis(right: Any) -> Any:
    def look(self: Any, instances: Any, now_ns: int) -> float:
        share: float = right(self, instances, now_ns)
        self.holds = self.holds and share > self._settings.scarce_above
        return share

    return look


def _scarce_at_once(right: Any) -> Any:
    def look(self: Any, instances: Any, now_ns: int) -> float:
        share: float = right(self, instances, now_ns)
        self.holds = self.holds or share > self._settings.scarce_above
        return share

    return look


def _plain_quantile(_right: Any) -> Any:
    """The quantile of what was seen, without the rank that a new value needs."""

    def upper(self: Any, alpha: float) -> float | None:
        values = self._sorted
        return values[min(len(values) - 1, int(len(values) * (1 - alpha)))] if values else None

    return upper


def _living_members_only(right: Any) -> Any:
    return lambda programs: right([one for one in programs if not one.finished])


def _own_leaf_only(_right: Any) -> Any:
    def choose(self: Any, source: int, destination: int, below: Any) -> Any:
        return least_used(self._joined(source, destination), self._up[source], below)

    return choose


def _sum_of_both_ends(_right: Any) -> Any:
    def choose(self: Any, source: int, destination: int, below: Any) -> Any:
        both = [out + into for out, into in zip(self._up[source], self._down[destination], strict=True)]
        return least_used(self._joined(source, destination), both, below)

    return choose


MUTANTS = (
    # Placement
    Mutant(
        "the most recent object leaves",
        Recency,
        "key",
        instead(lambda _self, use: (-use.turn,)),
        test_eviction_orders.test_recency_lets_the_longest_unused_object_go_first,
    ),
    Mutant(
        "of objects used as often the most recent one leaves",
        Frequency,
        "key",
        instead(lambda _self, use: (use.uses, -use.turn)),
        test_eviction_orders.test_frequency_lets_the_least_used_go_first_and_of_those_the_least_recent,
    ),
    Mutant(
        "counts that do not fade",
        Aged,
        "key",
        instead(lambda _self, use: (math.log2(use.uses), use.turn)),
        test_eviction_orders.test_aged_forgets_an_old_favourite_that_frequency_keeps,
    ),
    Mutant(
        "objects used once that are kept as if they came back at once",
        Ewma,
        "key",
        instead(lambda _self, use: (1, -(use.last_ns + use.gap_ns), use.turn)),
        test_eviction_orders.test_ewma_lets_objects_used_once_go_before_all_others,
    ),
    Mutant(
        "the object whose next use is nearest leaves",
        Belady,
        "key",
        instead(lambda _self, use: (use.next_ns, use.turn)),
        test_eviction_orders.test_belady_lets_the_object_go_whose_next_use_is_farthest,
    ),
    Mutant(
        "classes that come back alike",
        ClassWise,
        "standing",
        instead(lambda _self, _group, key, _now_ns: key[0]),
        test_classwise.test_the_class_that_comes_back_keeps_its_objects,
    ),
    Mutant(
        "a checkpoint that is judged by what its neighbour was",
        worth._Chain,
        "drop",
        lambda right: lambda self, position: right(self, position) and [],
        test_reclaim_order.test_a_checkpoint_that_became_the_newest_is_judged_with_the_kv_that_goes_with_it,
    ),
    Mutant(
        "a host slot that is freed under its reader",
        exclusive,
        "loaded",
        _host_slot_freed_at_once,
        test_exclusive.test_a_reader_of_the_host_copy_keeps_both_until_it_leaves,
    ),
    Mutant(
        "a checkpoint behind what matched",
        test_checkpoints,
        "usable_tokens",
        _first_checkpoint_behind,
        lambda: test_checkpoints.test_the_last_checkpoint_within_the_match_is_what_can_be_used(
            (1024, 4096), 9000, 4096
        ),
    ),
    Mutant(
        "recency and efficiency in different units",
        marconi,
        "_normalised",
        instead(list),
        test_marconi.test_a_score_is_the_normalised_recency_and_alpha_times_the_normalised_efficiency,
    ),
    # Routing
    Mutant(
        "an instance that has room whatever it promised",
        completion_time,
        "waiting_steps",
        always(0),
        test_completion_time.test_a_request_without_room_waits_for_the_nearest_ends_that_free_enough,
    ),
    Mutant(
        "a newcomer that slows nobody",
        Pending,
        "delayed_tokens",
        always(0),
        test_completion_time.test_each_part_of_the_increment_is_what_the_formula_says,
    ),
    Mutant(
        "scarcity that ends where it began",
        Scarcity,
        "look",
        _scarce_without_hysteresis,
        test_guards.test_scarcity_must_last_before_requests_are_sprayed_and_ends_well_below,
    ),
    Mutant(
        "scarcity that need not last",
        Scarcity,
        "look",
        _scarce_at_once,
        test_guards.test_scarcity_must_last_before_requests_are_sprayed_and_ends_well_below,
    ),
    Mutant(
        "small pools of unequal cards that are counted",
        guards,
        "_slowest_share",
        always(1.0),
        test_guards.test_small_pools_of_unequal_cards_are_not_counted,
    ),
    Mutant(
        "shares that are written for every small change",
        shares,
        "_settled",
        instead(lambda name, wanted, _previous, _step: wanted.get(name, 0)),
        test_shares.test_a_small_change_changes_nothing_so_that_routers_are_left_alone,
    ),
    Mutant(
        "a bound that covers less than it says",
        SlidingWindow,
        "upper",
        _plain_quantile,
        test_prediction.test_before_enough_was_seen_the_bound_is_the_limit_of_the_engine,
    ),
    # Trajectories
    Mutant(
        "programs that are admitted as if they did not grow",
        admission,
        "reserve_tokens",
        instead(lambda program, _settings: program.context_tokens),
        test_admission.test_without_room_for_all_the_group_nearest_its_end_goes_first,
    ),
    Mutant(
        "programs that wait for ever",
        admission,
        "_aged",
        always(False),
        test_admission.test_a_large_program_is_overtaken_until_it_has_waited_long_enough,
    ),
    Mutant(
        "groups that do not count what they finished",
        admission,
        "group_progress",
        _living_members_only,
        test_admission.test_finished_members_bring_their_group_nearer_to_its_end,
    ),
    # Ports
    Mutant(
        "a spine that is chosen by one end",
        Coordinator,
        "choose",
        _own_leaf_only,
        test_spines.test_only_both_ends_see_a_crowd_at_the_receiver,
    ),
    Mutant(
        "a spine that is chosen by the sum of both ends",
        Coordinator,
        "choose",
        _sum_of_both_ends,
        test_spines.test_the_worse_end_counts_before_the_sum_of_both,
    ),
    Mutant(
        "a fabric that is taken for linear",
        learning,
        "CHECK_PORTS",
        instead(()),
        test_learning.test_a_fabric_whose_hash_is_not_linear_is_found_out,
    ),
    Mutant(
        "the same port again",
        test_learning,
        "redrawn",
        instead(lambda _port, below: FIRST_PORT + below(PORT_COUNT - 1)),
        lambda: test_learning.test_another_port_is_any_of_the_others_once(FIRST_PORT + 5),
    ),
    Mutant(
        "ports that outlive the topology",
        PortTable,
        "topology_changed",
        always(None),
        test_learning.test_ports_are_forgotten_after_their_time_and_with_any_change_of_the_topology,
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.fault)
def test_every_known_fault_is_noticed(mutant: Mutant) -> None:
    notice(mutant)
