"""What each pool has of each tier, and could have at most: the figures that a what-if compares."""

from dataclasses import dataclass

from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.offers import collect_offers
from kvpool.plan.room import measure
from kvpool.plan.scene import set_scene


@dataclass(frozen=True, slots=True)
class TierOutlook:
    """One tier of one pool, in bytes."""

    pool: ObjectKey
    tier: str
    declared_bytes: int
    held_bytes: int
    """Admitted: units that are decided."""
    most_bytes: int
    """What it could hold if every other pool stayed as it is; at least what it holds."""

    @property
    def fits(self) -> bool:
        """Whether all that is declared has a place, or would find one."""
        return self.declared_bytes <= self.most_bytes


def outlook(snapshot: Snapshot, now: Instant) -> tuple[TierOutlook, ...]:
    """Return the outlook of every tier of every pool, oldest pool first. Modes are not looked at."""
    scene = set_scene(snapshot, now)
    room = measure(snapshot, scene.grounds, scene.rulings)
    return tuple(
        TierOutlook(
            demand.key,
            tier.tier,
            tier.declared_bytes,
            tier.held_bytes,
            max(
                tier.held_bytes,
                collect_offers(demand, tier, scene.grounds, scene.rulings, room, acting=False).most_bytes,
            ),
        )
        for demand in scene.demands
        for tier in demand.tiers
    )
