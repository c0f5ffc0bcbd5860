"""The ratio of prefill to decode instances that a group has, and the one that the planner recommends."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from kvpool.api.common import Role
from kvpool.api.duration import parse_duration
from kvpool.api.pdgroup import Member, PDGroup, RatioStatus
from kvpool.api.planning import GroupPlanning, PlannedEngine
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot
from kvpool.plan.presets import UnknownPresetError, card_named, kv_memory_at_16_bits, link_named, shape_named
from kvpool.plan.ratio.demand import Promise, Shape
from kvpool.plan.ratio.rates import Impossible, Roles
from kvpool.plan.ratio.recommendation import Asked, recommend, recommend_beside
from kvpool.plan.ratio.split import Bounds, Split
from kvpool.plan.timing.constants import constants_for
from kvpool.plan.timing.model import NS_PER_SECOND
from kvpool.plan.timing.shapes import ModelShape, Ranks

MOST_TEXT = 256


def ratio_status(snapshot: Snapshot, group: PDGroup, members: Sequence[Member]) -> RatioStatus:
    """Say what serves, and what should.

    Without `spec.planning` nothing is recommended. The cards of all slots are taken to stay, whether they
    serve or not: what is recommended does not change with a fault.
    """
    serving = instances([member for member in members if member.effective_weight > 0])
    current = instances(members)
    both = current.prefill > 0 and current.decode > 0
    told = str(serving) if both else ""
    if group.spec.planning is None or group.spec.prefill is None or group.spec.decode is None:
        return RatioStatus(current=told)
    try:
        roles = _roles(group.spec.planning, shape_of_pool(snapshot, group))
    except UnknownPresetError as error:
        return RatioStatus(current=told, message=str(error)[:MOST_TEXT])
    if not both:
        found = recommend(roles, _asked(group, group.spec.planning, None))
    else:
        cards = current.cards(roles.prefill_cards, roles.decode_cards)
        found = recommend_beside(current, roles, _asked(group, group.spec.planning, cards))
    if isinstance(found, Impossible):
        return RatioStatus(current=told, limited_by=found.limit.value, message=found.text[:MOST_TEXT])
    return RatioStatus(
        current=told,
        recommended=str(found.split),
        limited_by=found.limited_by.value,
        message=found.text[:MOST_TEXT],
    )


def instances(members: Iterable[Member]) -> Split:
    """Count the slots of each role."""
    roles = [member.role for member in members]
    return Split(roles.count(Role.PREFILL), roles.count(Role.DECODE))


def engine_of(group: PDGroup, role: Role) -> PlannedEngine | None:
    """Return what is planned with as one instance of a role; None without `spec.planning`."""
    planning = group.spec.planning
    if planning is None:
        return None
    return planning.prefill if role is Role.PREFILL else planning.decode


def shape_of_pool(snapshot: Snapshot, group: PDGroup) -> ModelShape:
    """Return the model of the group's pool. Raises UnknownPresetError, also where the pool names none."""
    name = group.spec.pool_ref.name
    pool = snapshot.pools.get(ObjectKey(group.metadata.namespace, name))
    planning = pool.spec.planning if pool is not None else None
    if planning is None or planning.model.preset is None:
        raise UnknownPresetError(
            f"KVPool {name} names no model that kvpool knows: give its spec.planning.model.preset"
        )
    return shape_named(planning.model.preset)


def _roles(planning: GroupPlanning, shape: ModelShape) -> Roles:
    """One instance of each role, by data sheet. Raises UnknownPresetError."""
    prefill, decode = planning.prefill, planning.decode
    decode_card = card_named(decode.accelerator)
    ranks = Ranks(decode.accelerators)
    kv_bytes = ranks.held_bytes_per_token(shape)
    prefill_card, prefill_ranks = card_named(prefill.accelerator), Ranks(prefill.accelerators)
    prefill_room = kv_memory_at_16_bits(shape, prefill_card, prefill.accelerators)
    return Roles(
        prefill=constants_for(shape, prefill_card, prefill_ranks).timing,
        decode=constants_for(shape, decode_card, ranks).timing,
        link=link_named(planning.transfer_link),
        kv_bytes_per_token=kv_bytes,
        decode_capacity_tokens=kv_memory_at_16_bits(shape, decode_card, decode.accelerators) // kv_bytes,
        prefill_cards=prefill.accelerators,
        decode_cards=decode.accelerators,
        prefill_capacity_tokens=prefill_room // prefill_ranks.held_bytes_per_token(shape),
    )


def _asked(group: PDGroup, planning: GroupPlanning, cards: int | None) -> Asked:
    requests, slo = planning.requests, group.spec.slo
    hit = requests.prompt_tokens * requests.hit_percent // 100
    bounds = group.spec.ratio
    least = fraction_of(bounds.min) if bounds is not None else None
    most = fraction_of(bounds.max) if bounds is not None else None
    return Asked(
        shapes=(Shape(requests.prompt_tokens, requests.output_tokens, hit),),
        promise=Promise(
            ttft_ns=round(parse_duration(slo.ttft) * NS_PER_SECOND),
            tpot_ns=round(parse_duration(slo.tpot) * NS_PER_SECOND),
        ),
        cards=cards,
        bounds=Bounds(least if least is not None else Fraction(0), most),
    )


def fraction_of(text: str | None) -> Fraction | None:
    """Read `2/3`; None for nothing, and for a fraction over zero."""
    if text is None:
        return None
    above, _, below = text.partition("/")
    return Fraction(int(above), int(below)) if int(below) else None
