"""How many sessions fit into what a pool was admitted, and which limit binds: the tier planner, asked live.

The accelerators' own memory and all links are those of data sheets, as `spec.planning` names them; what a
pool has in its tiers is what was admitted. One node is planned, with its share of the bytes and its links:
the bytes of a session come from one node. A pool without units is planned with its nodes' accelerators.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kvpool.api.conditions import ConditionType, Verdict
from kvpool.api.duration import parse_duration
from kvpool.api.planning import ModelStatus, PlannedHost, PoolPlanning, SessionLimit, SessionStatus
from kvpool.plan.presets import UnknownPresetError, card_named, kv_memory_at_16_bits, link_named, shape_named
from kvpool.plan.sizes import short_size
from kvpool.plan.tiers.limits import Limit, LimitedBy
from kvpool.plan.tiers.planner import plan_tiers
from kvpool.plan.tiers.stack import Demand, Link, Stack, Tier
from kvpool.plan.timing.cards import Card
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.model import NS_PER_SECOND, LinkModel
from kvpool.plan.timing.shapes import ModelShape, Ranks

_HOST, _CXL, _DRIVES = "host link", "CXL link", "drives"
_PATHS: Final = {"DRAM": (_HOST,), "CXL": (_CXL, _HOST), "SSD": (_DRIVES, _HOST)}


@dataclass(frozen=True, slots=True)
class PlannedPool:
    """What a pool's status says of `spec.planning`."""

    verdict: Verdict
    sessions: SessionStatus | None
    model: ModelStatus | None


def plan_sessions(planning: PoolPlanning, admitted_bytes: Mapping[str, int], nodes: int) -> PlannedPool:
    """Plan a pool of so many nodes; `admitted_bytes` by tier. What cannot be planned is said, not raised."""
    try:
        card = card_named(planning.host.accelerator)
        shape = _shape(planning)
        links = _links(planning.host)
    except UnknownPresetError as error:
        return PlannedPool(Verdict(ConditionType.PLANNED, False, "PresetUnknown", str(error)), None, None)
    try:
        each = _bytes_per_token(planning, shape)
        demand = _demand(planning, shape, card, each)
    except ValueError as error:  # an object from before the schema refused it, such as a returnAfter of 0s
        text = f"spec.planning.sessions cannot be planned: {error}"
        return PlannedPool(Verdict(ConditionType.PLANNED, False, "SessionsInvalid", text), None, None)
    model = ModelStatus(kv_bytes_per_token=each, session_bytes=demand.session_bytes)
    # Without a known model its weights are not known either: the accelerators' memory is then left out.
    fast = Tier(
        "HBM", kv_memory_at_16_bits(shape, card, planning.host.accelerators) if shape is not None else 0
    )
    if shape is not None and fast.capacity_bytes < demand.session_bytes:
        text = _no_room_text(planning.host, fast.capacity_bytes, demand.session_bytes)
        none = SessionStatus(capacity=0, limited_by=SessionLimit.CAPACITY, message=text[:256])
        return PlannedPool(Verdict(ConditionType.PLANNED, False, "NothingFits", text), none, model)
    shares = {name: size // max(1, nodes) for name, size in admitted_bytes.items() if size}
    lower = [
        Tier(name, size, _PATHS[name], write_bytes_per_day=_write_budget(name, size, planning.host))
        for name, size in shares.items()
    ]
    plan = plan_tiers(Stack((fast, *lower), links, planning.placement.exclusive), demand)
    fitting = nodes * plan.sessions
    text = f"on each of {nodes} nodes {_limit_text(plan.binding)}"
    if plan.next_limit is not None:
        text += f"; next: {_limit_text(plan.next_limit)}"
    sessions = SessionStatus(
        capacity=fitting, limited_by=SessionLimit(plan.binding.kind.value), message=text[:256]
    )
    if fitting == 0:
        return PlannedPool(Verdict(ConditionType.PLANNED, False, "NothingFits", text), sessions, model)
    told = f"{fitting} sessions of {short_size(demand.session_bytes)} fit; {text}"
    return PlannedPool(Verdict(ConditionType.PLANNED, True, plan.binding.kind.value, told), sessions, model)


def _shape(planning: PoolPlanning) -> ModelShape | None:
    """The known model; None when only its bytes for each token are given."""
    preset = planning.model.preset
    return None if preset is None else shape_named(preset)


def _links(host: PlannedHost) -> tuple[Link, ...]:
    """All lanes of one node together: every accelerator loads its own part of a session."""
    return (
        _link(_HOST, link_named(host.host_link), host.accelerators),
        _link(_CXL, link_named(host.cxl_link), 1),
        _link(_DRIVES, link_named(host.drive_link), host.drives),
    )


def _link(name: str, model: LinkModel, lanes: int) -> Link:
    return Link(name, model.bytes_per_second * lanes, model.setup_ns)


def _bytes_per_token(planning: PoolPlanning, shape: ModelShape | None) -> int:
    """Bytes that one token adds on all ranks together, copies counted."""
    if shape is None:
        return planning.model.kv_bytes_per_token or 1
    return Ranks(planning.host.accelerators).held_bytes_per_token(shape)


def _demand(planning: PoolPlanning, shape: ModelShape | None, card: Card, token_bytes: int) -> Demand:
    sessions = planning.sessions
    ttft = sessions.ttft
    if shape is None:
        timing = None
        parked = sessions.context_tokens * token_bytes
    else:
        ranks = Ranks(planning.host.accelerators)
        timing = constants_for(shape, card, ranks).timing
        parked = ranks.session_bytes(shape, sessions.context_tokens)
    return Demand(
        session_bytes=parked,
        return_seconds=parse_duration(sessions.return_after),
        context_tokens=sessions.context_tokens,
        new_tokens=sessions.turn_tokens,
        new_bytes=sessions.turn_tokens * token_bytes,
        timing=timing,
        ttft_target_ns=None if ttft is None else round(parse_duration(ttft) * NS_PER_SECOND),
    )


def _write_budget(tier: str, size_bytes: int, host: PlannedHost) -> int | None:
    """Bytes a day that the tier may be written; None: as many as one likes."""
    if tier != "SSD" or host.drive_writes_per_day is None:
        return None
    return int(Fraction(host.drive_writes_per_day) * size_bytes)


def _no_room_text(host: PlannedHost, there_is: int, needs: int) -> str:
    """Why nobody is served: what no accelerator can bring up and go on with is not kept for anybody."""
    accelerators = f"{host.accelerators} x {host.accelerator}"
    return (
        f"one session runs in {short_size(needs)} of the accelerators' own memory, and {accelerators} leave "
        f"{short_size(there_is)} beside the weights: plan more accelerators in spec.planning.host"
    )


def _limit_text(limit: Limit) -> str:
    """One limit with both figures."""
    at = f"{limit.sessions} by {limit.kind.value.lower()} of {limit.where}"
    if limit.kind is LimitedBy.LATENCY:
        return f"{at}: {_ms(limit.one_needs)} to the first token, {_ms(limit.there_is)} allowed"
    unit = {LimitedBy.BANDWIDTH: " a second", LimitedBy.ENDURANCE: " a day"}.get(limit.kind, "")
    needs, there_is = short_size(limit.one_needs), short_size(limit.there_is)
    return f"{at}: one needs {needs}{unit}, there is {there_is}{unit}"


def _ms(duration_ns: int) -> str:
    return f"{duration_ns / 1e6:,.0f} ms"
