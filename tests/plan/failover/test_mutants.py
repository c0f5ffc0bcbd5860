"""Known ways to get failover wrong: each is put into the code, and a named test has to notice."""

# ruff: noqa: ANN401 - a mutant replaces functions of any signature

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kvpool.api.engineslot import FenceProof
from kvpool.api.kvnode import DeviceVerdict
from kvpool.api.supernode import FenceLevel
from kvpool.model.decisions import Reason
from kvpool.model.ids import ObjectKey
from kvpool.plan import (
    advance,
    evidence,
    failover,
    instances,
    liveness,
    moves,
    opening,
    settling,
    spares,
    weights,
)
from kvpool.plan.evidence import DeviceFinding
from kvpool.plan.liveness import HostFinding, HostState
from kvpool.rules.fencing import Fence
from tests.builders.failover_api import Api
from tests.harness.mutants import Mutant, always, planted
from tests.plan.failover import (
    test_evidence,
    test_interleavings,
    test_liveness,
    test_moves,
    test_moves_under_change,
    test_spares,
    test_weights,
)

RELEASED = Fence(FenceProof.RELEASE_ACK, FenceLevel.PROCESS)
FAULTY = DeviceFinding(DeviceVerdict.FAULTY, Reason("Mutant", "unknown is taken for faulty"), 0.0)


def _unversioned(_right: Any) -> Any:
    """A merge patch: the write says neither which version nor under which leader it was decided."""
    return lambda self, node, _version, _operator_epoch: self.kvnodes[node]


def _dead_when_not_ready(right: Any) -> Any:
    def finding(snapshot: Any, node: str, *args: Any) -> Any:
        if liveness._not_ready(snapshot.nodes.get(node)):
            return HostFinding(HostState.DEAD, Reason("HostDead", "not ready"), 0.0)
        return right(snapshot, node, *args)

    return finding


def _silence_is_death(right: Any) -> Any:
    def judged(*args: Any) -> Any:
        return replace(right(*args), state=HostState.DEAD)

    return judged


def _unknown_is_faulty(right: Any) -> Any:
    def finding(*args: Any) -> Any:
        found = right(*args)
        return FAULTY if found.verdict is DeviceVerdict.UNKNOWN else found

    return finding


def _only_open_moves_withdraw(_right: Any) -> Any:
    def is_withdrawn(self: Any, slot: Any) -> bool:
        remap = self.open_of(moves.key_of(slot))
        return remap is not None and self.was_claimed(remap) and remap.spec.from_epoch == slot.spec.epoch

    return is_withdrawn


def _eager_release(right: Any) -> Any:
    """Takes every claim whose slot does not sit there for a leftover, also one that is about to be bound."""

    def why_over(draft: Any, node: str, claim: Any, given_up: Any) -> Any:
        slot = draft.snapshot.slots.get(ObjectKey.of(claim.slot))
        if slot is not None and claim.epoch != slot.spec.epoch:
            return "looks unused"
        return right(draft, node, claim, given_up)

    return why_over


def _full_at_once(_right: Any) -> Any:
    return lambda *_args: (100, Reason("Serving", "no ramp"))


def _farthest(right: Any) -> Any:
    return lambda *args: -right(*args)


def _new_move_each_time(_right: Any) -> Any:
    """A new leader opens its own move instead of resuming the recorded one."""

    def open_of(self: Any, slot: Any) -> Any:
        found = [remap for remap in self.of(slot) if moves.is_open(remap)]
        mine = self._snapshot.leadership.operator_epoch
        return next((remap for remap in found if remap.spec.operator_epoch == mine), None)

    return open_of


MUTANTS = (
    Mutant(
        "a claim without a version check",
        Api,
        "_kvnode",
        _unversioned,
        test_moves_under_change.test_a_late_claim_of_a_dead_leader_is_refused,
    ),
    Mutant(
        "a bind that does not wait for the old holder's stop",
        advance,
        "_fence",
        always(RELEASED),
        test_moves.test_a_slot_is_not_bound_elsewhere_while_its_old_engine_may_still_serve,
    ),
    Mutant(
        "a bind before the devices are claimed",
        advance,
        "is_claimed",
        always(True),
        test_interleavings.test_no_order_of_events_within_one_move_is_unsafe,
    ),
    Mutant(
        "a soft move that does not wait for weight 0",
        advance,
        "is_cordoned",
        always(True),
        test_moves.test_a_device_under_maintenance_is_left_once_routers_send_it_nothing,
    ),
    Mutant(
        "weights that ignore faults",
        weights,
        "_why_zero",
        always(None),
        test_weights.test_a_fatal_code_takes_the_weight_away_in_the_very_next_plan,
    ),
    Mutant(
        "no slow start",
        weights,
        "_ramp",
        _full_at_once,
        test_weights.test_a_slot_rises_step_by_step_after_it_first_served,
    ),
    Mutant(
        "any spare instead of the nearest",
        spares,
        "distance",
        always(0),
        lambda: test_spares.test_the_nearest_spare_is_taken((), "z-same-board/acc-0"),
    ),
    Mutant(
        "the farthest spare",
        spares,
        "distance",
        _farthest,
        test_moves.test_a_fatal_code_moves_the_slot_to_the_standby_of_the_same_rack,
    ),
    Mutant(
        "a spare in quarantine",
        settling,
        "_quarantine",
        always(None),
        test_spares.test_a_spare_in_quarantine_is_passed_over,
    ),
    Mutant(
        "no budget for voluntary moves",
        opening,
        "_budget",
        always(None),
        test_moves.test_only_so_many_voluntary_moves_run_at_once,
    ),
    Mutant(
        "a voluntary move that takes the last spares",
        opening,
        "_below_floor",
        always(None),
        test_moves.test_a_voluntary_move_never_takes_the_last_spares,
    ),
    Mutant(
        "expiries believed right after an outage",
        liveness,
        "_believed_at",
        always(0.0),
        lambda: test_liveness.test_no_expiry_is_believed_for_a_lease_and_a_witness_after_a_change("api"),
    ),
    Mutant(
        "expiries believed while most of the group lost its leases",
        liveness,
        "is_mass_loss",
        always(False),
        test_liveness.test_leases_lost_by_more_than_half_of_the_group_are_an_outage_of_the_control_plane,
    ),
    Mutant(
        "expiries believed right after a mass loss",
        liveness,
        "_came_back",
        always(False),
        test_liveness.test_the_first_expiries_after_a_mass_loss_are_not_believed_yet,
    ),
    Mutant(
        "a Node that is not ready as the only proof of death",
        liveness,
        "_finding",
        _dead_when_not_ready,
        test_liveness.test_a_node_that_is_not_ready_is_alive_while_it_renews_its_lease,
    ),
    Mutant(
        "a lost lease as the only proof of death",
        liveness,
        "_judged",
        _silence_is_death,
        test_moves.test_the_death_of_an_agent_alone_moves_nothing,
    ),
    Mutant(
        "witnesses on the same board",
        liveness,
        "board_of",
        lambda _right: lambda _snapshot, node: node,
        test_liveness.test_peers_on_the_same_board_are_no_witnesses,
    ),
    Mutant(
        "an expired lease as proof in a group of two",
        liveness,
        "SMALLEST_JUDGED_GROUP",
        lambda _right: 1,
        test_liveness.test_in_a_guard_group_of_two_an_expired_lease_proves_nothing,
    ),
    Mutant(
        "a blind monitor taken for a broken device",
        evidence,
        "finding_of",
        _unknown_is_faulty,
        test_moves.test_the_death_of_an_agent_alone_moves_nothing,
    ),
    Mutant(
        "soft evidence that need not stand",
        evidence,
        "parse_duration",
        always(0.0),
        test_moves.test_soft_evidence_moves_a_slot_only_after_it_stood_long_enough,
    ),
    Mutant(
        "no common-cause hold",
        evidence,
        "COMMON_CAUSE_DEVICES",
        lambda _right: 99,
        test_evidence.test_the_same_soft_code_on_three_devices_at_once_moves_none_of_them,
    ),
    Mutant(
        "an epoch that serves again after its engine was told to stop",
        moves.Moves,
        "is_withdrawn",
        _only_open_moves_withdraw,
        test_moves.test_an_epoch_whose_engine_was_told_to_stop_never_serves_again,
    ),
    Mutant(
        "claims released before their bind arrived",
        settling,
        "_why_over",
        _eager_release,
        test_interleavings.test_no_order_of_events_within_one_move_is_unsafe,
    ),
    Mutant(
        "a move cancelled because a new leader has not heard yet",
        advance,
        "_is_cleared",
        always(True),
        test_moves_under_change.test_a_new_leader_does_not_cancel_a_move_because_it_has_not_heard_yet,
    ),
    Mutant(
        "a second move beside the one that an earlier leader opened",
        moves.Moves,
        "open_of",
        _new_move_each_time,
        test_moves_under_change.test_a_new_leader_goes_on_with_an_open_move_under_its_recorded_epoch,
    ),
    Mutant(
        "a leader that acts under a lower epoch than it sees",
        failover,
        "operator_epochs_in",
        always([]),
        test_moves_under_change.test_a_leader_that_sees_a_higher_epoch_decides_nothing_until_it_steps_up,
    ),
    Mutant(
        "a pause that is not heeded",
        opening,
        "move_hold",
        always(None),
        test_moves_under_change.test_a_paused_cluster_opens_no_move_and_says_so,
    ),
    Mutant(
        "a slot whose fence is never taken for proven",
        instances,
        "is_given_up",
        always(False),
        test_moves_under_change.test_fewer_instances_take_the_last_slot_away_once_its_engine_stopped,
    ),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.fault)
def test_every_known_fault_is_noticed(mutant: Mutant) -> None:
    with planted(mutant), pytest.raises((AssertionError, KeyError)):
        mutant.killer()
