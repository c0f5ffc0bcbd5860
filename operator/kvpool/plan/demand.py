"""What a pool asks for and what it holds, tier by tier; and what in its spec cannot be granted at all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kvpool.api.kvnode import UnitSpec
from kvpool.api.kvpool import KVPool, OnRestart, PoolTier, ReclaimPolicy
from kvpool.api.tierbudget import BudgetTierName
from kvpool.model.decisions import Reason
from kvpool.model.ids import ObjectKey
from kvpool.model.snapshot import Snapshot
from kvpool.plan.grounds import Ground
from kvpool.plan.modes import Standing, capacity_standing_of
from kvpool.plan.sizes import MEBIBYTE, bytes_or_none

TIER_ORDER: tuple[BudgetTierName, ...] = ("DRAM", "CXL", "SSD")


@dataclass(frozen=True, slots=True)
class Holding:
    """A unit that is decided for a pool on a node."""

    node: str
    unit: UnitSpec


@dataclass(frozen=True, slots=True)
class TierDemand:
    """One tier of a pool; bytes over all nodes."""

    tier: BudgetTierName
    declared_bytes: int
    """As written by people."""
    wanted_bytes: int
    """Declared, in whole mebibytes."""
    held: tuple[Holding, ...]
    on_restart: OnRestart = OnRestart.ADOPT

    @property
    def held_bytes(self) -> int:
        """Bytes of the decided units."""
        return sum(holding.unit.size_bytes for holding in self.held)


@dataclass(frozen=True, slots=True)
class Demand:
    """A pool as admission sees it."""

    key: ObjectKey
    pool: KVPool
    standing: Standing
    tiers: tuple[TierDemand, ...]
    nodes: frozenset[str]
    """Nodes that the pool's selectors allow."""
    refused: Reason | None
    """Why nothing new can be granted, whatever is free."""


def demands(snapshot: Snapshot, grounds: Mapping[str, Ground]) -> tuple[Demand, ...]:
    """Read every living pool, oldest first, then by name."""
    alive = [
        (pool.metadata.creation_timestamp or "", key, pool)
        for key, pool in snapshot.pools.items()
        if pool.metadata.deletion_timestamp is None
    ]
    return tuple(
        _demand(key, pool, snapshot, grounds) for _, key, pool in sorted(alive, key=lambda entry: entry[:2])
    )


def _demand(key: ObjectKey, pool: KVPool, snapshot: Snapshot, grounds: Mapping[str, Ground]) -> Demand:
    held = _held(key, pool, grounds)
    asked = {tier.name: tier for tier in pool.spec.tiers}
    tiers = tuple(
        _tier_demand(name, asked.get(name), [holding for holding in held if holding.unit.tier == name])
        for name in TIER_ORDER
        if name in asked or any(holding.unit.tier == name for holding in held)
    )
    standing = capacity_standing_of(f"pool {key}", pool.metadata, pool.spec.mode, snapshot)
    return Demand(key, pool, standing, tiers, _allowed(pool, snapshot), _refusal(pool))


def _tier_demand(name: BudgetTierName, asked: PoolTier | None, held: Iterable[Holding]) -> TierDemand:
    declared = (bytes_or_none(asked.size) or 0) if asked else 0
    on_restart = asked.on_restart if asked else OnRestart.ADOPT
    return TierDemand(name, declared, declared // MEBIBYTE * MEBIBYTE, tuple(held), on_restart)


def _held(key: ObjectKey, pool: KVPool, grounds: Mapping[str, Ground]) -> list[Holding]:
    return [
        Holding(name, unit)
        for name, ground in grounds.items()
        for unit in ground.units
        if unit.pool == str(key) and unit.release == "None" and belongs_to(unit, pool)
    ]


def belongs_to(unit: UnitSpec, pool: KVPool) -> bool:
    """Tell whether a unit is this very pool's; a pool made anew under its name takes over retained units."""
    return unit.pool_uid in ("", pool.metadata.uid) or unit.reclaim_policy is ReclaimPolicy.RETAIN


def _allowed(pool: KVPool, snapshot: Snapshot) -> frozenset[str]:
    allowed = set(snapshot.nodes)
    if pool.spec.node_selector is not None:
        selector = pool.spec.node_selector
        allowed &= {name for name, fact in snapshot.nodes.items() if selector.matches(fact.labels)}
    if pool.spec.supernodes is not None:
        selector = pool.spec.supernodes
        members = [
            supernode.spec.node_selector
            for supernode in snapshot.supernodes.values()
            if selector.matches(supernode.metadata.labels)
        ]
        allowed &= {
            name
            for name, fact in snapshot.nodes.items()
            if any(member.matches(fact.labels) for member in members)
        }
    return frozenset(allowed)


def _refusal(pool: KVPool) -> Reason | None:
    spec = pool.spec
    later = {
        "cohort": spec.cohort,
        "tenants": spec.tenants,
        "lend": spec.lend,
        "ranks": spec.ranks,
        "store.lmcache": spec.store.lmcache,
    }
    unsupported = sorted(name for name, value in later.items() if value is not None and value != ())
    if unsupported:
        return Reason("NotSupported", f"spec.{unsupported[0]} is not supported yet: remove it")
    stores = sum(store is not None for store in (spec.store.mooncake, spec.store.none))
    if stores != 1:
        text = f"spec.store names {stores} stores: give exactly one of mooncake and none"
        return Reason("StoreInvalid", text)
    names = [tier.name for tier in spec.tiers]
    if len(set(names)) != len(names):
        return Reason("TierInvalid", f"spec.tiers names a tier twice: {', '.join(names)}")
    return next((reason for tier in spec.tiers if (reason := _size_refusal(tier)) is not None), None)


def _size_refusal(tier: PoolTier) -> Reason | None:
    size = bytes_or_none(tier.size)
    if size is None:
        return Reason("SizeInvalid", f"tier {tier.name}: size {tier.size} is not a size in whole bytes")
    if size < MEBIBYTE:
        return Reason("SizeInvalid", f"tier {tier.name}: size {tier.size} is below the smallest, 1Mi")
    return None
