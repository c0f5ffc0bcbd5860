"""The share of requests that each attached slot of a role gets under policy CompletionTime, worked out once.

`plan/routing/shares` decides; here it is told what the operator knows: constants by data sheet, and the KV
memory that engines say they use. What is not known makes nobody slower: then all get the full share.
"""

from collections.abc import Callable
from typing import Final

from kvpool.api.common import Role
from kvpool.api.conditions import ConditionType, Verdict
from kvpool.api.engineslot import EngineSlot
from kvpool.api.pdgroup import PDGroup, RoutingPolicy
from kvpool.model.decisions import Reason
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.attachment import attached
from kvpool.plan.engines import PodBook, roles_of
from kvpool.plan.freshness import is_fresh
from kvpool.plan.group_ratio import engine_of, shape_of_pool
from kvpool.plan.group_slots import slots_of
from kvpool.plan.presets import UnknownPresetError, card_named, kv_memory_at_16_bits
from kvpool.plan.routing.shares import FULL_SHARE, Member, ShareSettings, shares
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.model import TimingModel
from kvpool.plan.timing.shapes import Ranks

_SETTINGS: Final = ShareSettings()

FIGURE_GRACE_SECONDS: Final = 60.0
"""How long an engine keeps its share after its last figure: one that comes and goes moves no weight.

Nobody is held back for longer by what was true once.
"""

_LATELY: Final = "it does not say how much of its KV memory is in use, and for a minute keeps"


class ShareBook:
    """Shares of the slots of one snapshot."""

    def __init__(self, snapshot: Snapshot, pods: PodBook, now: Instant) -> None:
        self._snapshot = snapshot
        self._pods = pods
        self._now = now
        self._known: dict[tuple[ObjectKey, Role], dict[str, tuple[int, float | None]]] = {}

    def share(
        self, group: PDGroup, slot: EngineSlot, before: Callable[[EngineSlot], int]
    ) -> tuple[int, Reason | None]:
        """Return 1 to 100, and why it is below 100.

        `before` tells the share that a slot has, which is kept while it is nearly right; 0: none to keep.
        """
        if group.spec.routing.policy is not RoutingPolicy.COMPLETION_TIME:
            return FULL_SHARE, None
        key = ObjectKey(group.metadata.namespace, group.metadata.name), slot.spec.role
        if key not in self._known:
            self._known[key] = self._of_role(group, slot.spec.role, before)
        share, usage = self._known[key].get(slot.metadata.name, (FULL_SHARE, None))
        if share >= FULL_SHARE:
            return FULL_SHARE, None
        said = f"{usage:.0%} of its KV memory is in use: it gets" if usage is not None else _LATELY
        text = f"{said} {share} for each 100 of the emptiest"
        return max(1, share), Reason("KVPressure", text)

    def _of_role(
        self, group: PDGroup, role: Role, before: Callable[[EngineSlot], int]
    ) -> dict[str, tuple[int, float | None]]:
        """Share and use of KV memory of each attached slot; nothing for a pool too small to gain by it."""
        slots = [slot for slot in slots_of(self._snapshot, group) if slot.spec.role is role]
        known = constants_of(self._snapshot, group, role)
        members, previous = [], {}
        for slot in slots:
            engine = attached(self._snapshot, slot, self._pods, self._now)
            if engine is not None:
                usage = self._usage(slot, engine.pod_uid, known[1]) if known is not None else None
                timing = known[0] if known is not None else None
                keeps = timing is not None and usage is None and self._may_come(slot)
                members.append(Member(slot.metadata.name, True, timing, usage, keeps))
                previous[slot.metadata.name] = before(slot)
        if len(members) <= group.spec.routing.guards.small_pool:
            return {}
        by_name = shares(members, _SETTINGS, previous).by_name
        return {member.name: (by_name[member.name], member.kv_usage) for member in members}

    def _usage(self, slot: EngineSlot, pod_uid: str, capacity_bytes: int) -> float | None:
        """Share of an engine's KV memory in use, by its own word; None when it said nothing lately."""
        used = 0
        for node in dict.fromkeys(seat.node for seat in slot.spec.seats):
            agent = self._snapshot.agents.get(node)
            if agent is None or not is_fresh(agent, self._now):
                return None
            told = [engine.hbm_kv_bytes for engine in agent.engines if engine.pod_uid == pod_uid]
            if not told:
                return None
            used += sum(told)
        return min(1.0, used / capacity_bytes) if capacity_bytes else None

    def _may_come(self, slot: EngineSlot) -> bool:
        """Whether a figure that is missing may be on its way: no agent of the slot lacks it for long."""
        return all(
            self._now.monotonic_seconds < self._last_word(seat.node) + FIGURE_GRACE_SECONDS
            for seat in slot.spec.seats
        )

    def _last_word(self, node: str) -> float:
        """When a node's figures ended, or were to begin: with this leader, or with the agent's stream."""
        agent = self._snapshot.agents.get(node)
        if agent is None:
            return self._snapshot.leadership.since
        return agent.hello_at if is_fresh(agent, self._now) else agent.reported_at


def constants_of(snapshot: Snapshot, group: PDGroup, role: Role) -> tuple[TimingModel, int] | None:
    """Return constants and KV memory of an instance of a role, by data sheet; None when not known."""
    engine = engine_of(group, role)
    if engine is None:
        return None
    try:
        shape = shape_of_pool(snapshot, group)
        card = card_named(engine.accelerator)
    except UnknownPresetError:
        return None
    timing = constants_for(shape, card, Ranks(engine.accelerators)).timing
    return timing, kv_memory_at_16_bits(shape, card, engine.accelerators)


def calibrated(snapshot: Snapshot, group: PDGroup) -> Verdict | None:
    """Say what the weights of policy CompletionTime are computed from; None under other policies."""
    if group.spec.routing.policy is not RoutingPolicy.COMPLETION_TIME:
        return None
    unknown = [role.value for role, _ in roles_of(group) if constants_of(snapshot, group, role) is None]
    if unknown:
        text = (
            f"nothing is known of the engines of {', '.join(unknown)}, so that all get the same: give "
            f"spec.planning, and spec.planning.model.preset of KVPool {group.spec.pool_ref.name}"
        )
        return Verdict(ConditionType.CALIBRATED, False, "NoConstants", text)
    text = "constants are those of data sheets: nothing was measured on these nodes"
    return Verdict(ConditionType.CALIBRATED, False, "DataSheet", text)
