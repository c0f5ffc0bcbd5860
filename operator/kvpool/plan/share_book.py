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
from kvpool.plan.attachment import REATTACH_GRACE_SECONDS, attached
from kvpool.plan.engines import PodBook, roles_of
from kvpool.plan.freshness import hearing_until
from kvpool.plan.group_ratio import engine_of, shape_of_pool
from kvpool.plan.group_slots import slots_of
from kvpool.plan.presets import UnknownPresetError, card_named, kv_memory_at_16_bits
from kvpool.plan.routing.shares import FULL_SHARE, Member, ShareSettings, shares
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.model import TimingModel
from kvpool.plan.timing.shapes import Ranks

_SETTINGS: Final = ShareSettings()

FIGURE_GRACE_SECONDS: Final = 60.0
"""How long an engine's last figure counts: one that comes and goes moves no weight, its own or others'.

Nobody is held back for longer by what was true once.
"""


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
        used = f"{usage:.0%} of" if usage is not None else "it has yet to say how much of"
        text = f"{used} its KV memory is in use: it gets {share} for each 100 of the emptiest"
        return max(1, share), Reason("KVPressure", text)

    def _of_role(
        self, group: PDGroup, role: Role, before: Callable[[EngineSlot], int]
    ) -> dict[str, tuple[int, float | None]]:
        """Share and use of KV memory of each attached slot; nothing for a pool too small to gain by it.

        While figures of some are on their way, to a new leader or on a new stream, all that have a share keep
        it: each is measured by the best of them.
        """
        slots = [slot for slot in slots_of(self._snapshot, group) if slot.spec.role is role]
        known = constants_of(self._snapshot, group, role)
        members, previous, waits = [], {}, False
        for slot in slots:
            engine = attached(self._snapshot, slot, self._pods, self._now)
            if engine is not None:
                usage = self._usage(slot, engine.pod_uid, known[1]) if known is not None else None
                members.append(
                    Member(slot.metadata.name, True, known[0] if known is not None else None, usage)
                )
                previous[slot.metadata.name] = before(slot)
                waits = waits or (not usage and self._is_on_its_way(slot))
        if len(members) <= group.spec.routing.guards.small_pool:
            return {}
        by_name = shares(members, _SETTINGS, previous).by_name
        if waits and known is not None:
            by_name = {name: previous[name] or share for name, share in by_name.items()}
        return {member.name: (by_name[member.name], member.kv_usage) for member in members}

    def _usage(self, slot: EngineSlot, pod_uid: str, capacity_bytes: int) -> float | None:
        """Share of an engine's KV memory in use, by its own last word; None when that is long ago."""
        used = 0
        for node in dict.fromkeys(seat.node for seat in slot.spec.seats):
            agent = self._snapshot.agents.get(node)
            if agent is None or self._now.monotonic_seconds >= agent.reported_at + FIGURE_GRACE_SECONDS:
                return None
            told = [engine.hbm_kv_bytes for engine in agent.engines if engine.pod_uid == pod_uid]
            if not told:
                return None
            used += sum(told)
        return min(1.0, used / capacity_bytes) if capacity_bytes else None

    def _is_on_its_way(self, slot: EngineSlot) -> bool:
        """Whether an engine that says nothing, or 0 as it does at first, may not have come to word yet."""
        nodes = {seat.node for seat in slot.spec.seats}
        if hearing_until(self._snapshot, nodes, self._now) is not None:
            return True
        hellos = (self._snapshot.agents[node].hello_at for node in nodes & self._snapshot.agents.keys())
        return self._now.monotonic_seconds < max(hellos, default=float("-inf")) + REATTACH_GRACE_SECONDS


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
