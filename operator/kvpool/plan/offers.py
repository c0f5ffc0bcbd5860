"""What each node could hold of one tier of one pool, and how a size is laid over the nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kvpool.api.tierbudget import Backend
from kvpool.model.decisions import Reason
from kvpool.plan.budgets import Ruling, Rulings
from kvpool.plan.demand import Demand, Holding, TierDemand
from kvpool.plan.filling import fill
from kvpool.plan.grounds import Ground, Site, refusal, sites_of
from kvpool.plan.keeper_names import KEEPER_OVERHEAD_BYTES
from kvpool.plan.room import Room
from kvpool.plan.sizes import MEBIBYTE, short_size

Layout = Mapping[Site, int]
"""Bytes of each unit by its place; 0: the unit is to go."""


@dataclass(frozen=True, slots=True)
class SiteOffer:
    """Mebibytes one place holds now, and could hold."""

    site: Site
    held: int
    most: int


@dataclass(frozen=True, slots=True)
class Offer:
    """Mebibytes one node holds now, and could hold, over its places."""

    node: str
    held: int
    most: int
    places: tuple[SiteOffer, ...]
    limit: str
    """What binds, for people."""


@dataclass(frozen=True, slots=True)
class Offers:
    """All nodes' answers to one tier of one pool."""

    nodes: tuple[Offer, ...]
    refusals: Mapping[str, Reason]
    """Nodes that take nothing new, and why."""
    fixed: tuple[Holding, ...]
    """Units on nodes that take nothing new: they stay as they are."""

    @property
    def fixed_mebibytes(self) -> int:
        """What the fixed units hold."""
        return sum(holding.unit.size_bytes for holding in self.fixed) // MEBIBYTE

    @property
    def most_bytes(self) -> int:
        """What the tier could have at most."""
        return (self.fixed_mebibytes + sum(offer.most for offer in self.nodes)) * MEBIBYTE


def unit_name(demand: Demand, tier: str, numa_node: int) -> str:
    """Name a unit: `<namespace>.<pool>.<tier>.n<numa node>`."""
    return f"{demand.key.namespace}.{demand.key.name}.{tier.lower()}.n{numa_node}"


def collect_offers(
    demand: Demand,
    tier: TierDemand,
    grounds: Mapping[str, Ground],
    rulings: Rulings,
    room: Room,
    *,
    acting: bool,
) -> Offers:
    """Ask every node that the pool and a budget allow; with `acting`, only where the budget may act."""
    offers: list[Offer] = []
    refusals: dict[str, Reason] = {}
    for name in sorted(demand.nodes & grounds.keys()):
        ruling = rulings.of(name, tier.tier)
        if ruling is None:
            continue
        why = ruling.standing.hold if acting else None
        why = why or refusal(grounds[name], ruling)
        if why is not None:
            refusals[name] = why
            continue
        held = tuple(holding for holding in tier.held if holding.node == name)
        offers.append(_offer(demand, ruling, grounds[name], room, held))
    answering = {offer.node for offer in offers}
    fixed = tuple(holding for holding in tier.held if holding.node not in answering)
    return Offers(tuple(offers), refusals, fixed)


def _offer(demand: Demand, ruling: Ruling, ground: Ground, room: Room, held: Sequence[Holding]) -> Offer:
    mine = {holding.unit.numa_node: holding.unit for holding in held}
    taken = {unit.name for unit in ground.units}
    sites = {site.numa_node: site for site in sites_of(ground, ruling, mine)}
    memory = room.memory[ground.name]
    new = [
        site
        for numa, site in sites.items()
        if numa not in mine and unit_name(demand, ruling.tier, numa) not in taken
    ]
    if memory < KEEPER_OVERHEAD_BYTES * len(new) or room.places[ground.name] < len(new):
        new = []
    memory -= KEEPER_OVERHEAD_BYTES * len(new)
    places = [
        _place(sites.get(numa), unit.size_bytes // MEBIBYTE, Holding(ground.name, unit), room)
        for numa, unit in mine.items()
    ]
    places += [SiteOffer(site, 0, _mebibytes(room.medium[site.node, site.source])) for site in new]
    places.sort(key=lambda place: place.site.numa_node)
    growth, limit = _growth(ruling, ground, room, memory, sum(p.most - p.held for p in places))
    total = sum(place.held for place in places)
    return Offer(ground.name, total, total + growth, tuple(places), limit)


def _place(site: Site | None, held: int, holding: Holding, room: Room) -> SiteOffer:
    if site is None:  # the NUMA policy has moved on: what is there stays, and does not grow
        return SiteOffer(site_of(holding), held, held)
    kept = site_of(holding)
    return SiteOffer(
        Site(kept.node, kept.numa_node, site.source, kept.backend, kept.path),
        held,
        held + _mebibytes(room.medium[site.node, site.source]),
    )


def site_of(holding: Holding) -> Site:
    """Return the place of a decided unit; its medium is not known by name."""
    unit = holding.unit
    return Site(holding.node, unit.numa_node, "", unit.backend, unit.path)


def _growth(ruling: Ruling, ground: Ground, room: Room, memory: int, media: int) -> tuple[int, str]:
    """Mebibytes a node can add, and what binds."""
    limits = [
        (
            _mebibytes(room.budget[ground.name, ruling.tier]),
            f"left of budget {ruling.budget}'s {short_size(ruling.per_node_bytes)} per node",
        ),
        (media, f"free on its media after the reserve of {short_size(ruling.reserve_bytes)}"),
    ]
    if ruling.backend is Backend.TMPFS:
        allocatable = ground.fact.allocatable_memory_bytes if ground.fact else 0
        limits.append(
            (_mebibytes(memory), f"schedulable of its {short_size(allocatable)} allocatable memory")
        )
    least, what = min(limits, key=lambda limit: limit[0])
    return least, f"{short_size(least * MEBIBYTE)} {what}"


def _mebibytes(size_bytes: int) -> int:
    return max(0, size_bytes // MEBIBYTE)


def lay_out(tier: TierDemand, offers: Offers) -> Layout | None:
    """Lay the wanted bytes over the nodes; units that exist only grow. None when there is no room."""
    total = tier.wanted_bytes // MEBIBYTE - offers.fixed_mebibytes
    shares = fill(total, [offer.held for offer in offers.nodes], [offer.most for offer in offers.nodes])
    if shares is None:
        return None
    layout: dict[Site, int] = {}
    for offer, share in zip(offers.nodes, shares, strict=True):
        places = offer.places
        sizes = fill(share, [place.held for place in places], [place.most for place in places])
        for place, size in zip(places, sizes or (), strict=True):
            layout[place.site] = size * MEBIBYTE
    return layout


def shrink(tier: TierDemand) -> Layout:
    """Take bytes off the largest units first, until what is wanted is left."""
    held = sorted(tier.held, key=lambda holding: (holding.node, holding.unit.numa_node))
    sizes = [holding.unit.size_bytes // MEBIBYTE for holding in held]
    shares = fill(tier.wanted_bytes // MEBIBYTE, [0] * len(sizes), sizes) or (0,) * len(sizes)
    return {site_of(holding): share * MEBIBYTE for holding, share in zip(held, shares, strict=True)}
