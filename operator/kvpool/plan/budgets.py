"""Which budget rules which tier of which node: the first by name, and what the others are told."""

from collections.abc import Mapping
from dataclasses import dataclass

from kvpool.api.tierbudget import Backend, BudgetTier, BudgetTierName, TierBudget
from kvpool.model.decisions import Reason
from kvpool.model.snapshot import Snapshot
from kvpool.plan.modes import Standing, capacity_standing_of
from kvpool.plan.sizes import bytes_or_none, short_size


@dataclass(frozen=True, slots=True)
class Ruling:
    """One budget's word on one tier of the nodes it rules; sizes in bytes."""

    budget: str
    tier: BudgetTierName
    per_node_bytes: int
    reserve_bytes: int
    backend: Backend
    spec: BudgetTier
    standing: Standing
    unsound: Reason | None
    """Why nothing may be admitted under this tier; None when its figures make sense."""


@dataclass(frozen=True, slots=True)
class Rulings:
    """Who rules what."""

    by_place: Mapping[tuple[str, str], Ruling]
    """Node and tier to the ruling."""
    overruled: Mapping[tuple[str, str], Mapping[str, tuple[str, ...]]]
    """Budget and tier to the nodes where another budget (by name) rules."""
    matched: Mapping[str, tuple[str, ...]]
    """Budget to every node its selector matches, sorted."""
    unsound: Mapping[tuple[str, str], Reason]
    """Budget and tier to why nothing may be admitted under it."""

    def of(self, node: str, tier: str) -> Ruling | None:
        """Return the ruling of a node's tier; None when no budget speaks of it."""
        return self.by_place.get((node, tier))

    def nodes_ruled(self, budget: str, tier: str) -> tuple[str, ...]:
        """Return the nodes whose tier this budget rules, sorted."""
        return tuple(
            sorted(
                node for (node, at), ruling in self.by_place.items() if at == tier and ruling.budget == budget
            )
        )


def backend_of(tier: BudgetTier) -> Backend:
    """Return the backend that holds a tier's units."""
    return tier.backend or (Backend.FILE if tier.name == "SSD" else Backend.TMPFS)


def rule(snapshot: Snapshot) -> Rulings:
    """Let every budget speak, in name order; the first one rules."""
    by_place: dict[tuple[str, str], Ruling] = {}
    overruled: dict[tuple[str, str], dict[str, list[str]]] = {}
    matched: dict[str, tuple[str, ...]] = {}
    unsound: dict[tuple[str, str], Reason] = {}
    for name, budget in sorted(snapshot.budgets.items()):
        matched[name] = _matched(budget, snapshot)
        standing = capacity_standing_of(f"budget {name}", budget.metadata, budget.spec.mode, snapshot)
        for tier in budget.spec.tiers:
            ruling = _ruling(name, tier, standing)
            if ruling.unsound is not None:
                unsound[name, tier.name] = ruling.unsound
            for node in matched[name]:
                first = by_place.setdefault((node, tier.name), ruling)
                if first.budget != name:
                    overruled.setdefault((name, tier.name), {}).setdefault(first.budget, []).append(node)
    frozen = {
        place: {winner: tuple(nodes) for winner, nodes in losses.items()}
        for place, losses in overruled.items()
    }
    return Rulings(by_place, frozen, matched, unsound)


def _matched(budget: TierBudget, snapshot: Snapshot) -> tuple[str, ...]:
    if budget.metadata.deletion_timestamp is not None:
        return ()
    selector = budget.spec.node_selector
    return tuple(sorted(name for name, fact in snapshot.nodes.items() if selector.matches(fact.labels)))


def _ruling(budget: str, tier: BudgetTier, standing: Standing) -> Ruling:
    per_node = bytes_or_none(tier.per_node)
    reserve = bytes_or_none(tier.reserve)
    return Ruling(
        budget,
        tier.name,
        per_node or 0,
        reserve or 0,
        backend_of(tier),
        tier,
        standing,
        _unsound(budget, tier, per_node, reserve),
    )


def _unsound(budget: str, tier: BudgetTier, per_node: int | None, reserve: int | None) -> Reason | None:
    where = f"budget {budget}, tier {tier.name}"
    if per_node is None or per_node <= 0:
        text = f"{where}: perNode {tier.per_node} is not a size above 0 in whole bytes"
        return Reason("BudgetInvalid", text)
    if reserve is None:
        return Reason("BudgetInvalid", f"{where}: reserve {tier.reserve} is not a size in whole bytes")
    if tier.low_watermark >= tier.high_watermark:
        return Reason(
            "BudgetInvalid",
            f"{where}: lowWatermark {tier.low_watermark} must be below highWatermark {tier.high_watermark}",
        )
    return _above_volume(where, tier, per_node, reserve)


def _above_volume(where: str, tier: BudgetTier, per_node: int, reserve: int) -> Reason | None:
    if tier.volume_limit is None:
        return None
    limit = bytes_or_none(tier.volume_limit)
    if limit is None:
        text = f"{where}: volumeLimit {tier.volume_limit} is not a size in whole bytes"
        return Reason("BudgetInvalid", text)
    if per_node + reserve <= limit:
        return None
    return Reason(
        "VolumeLimitExceeded",
        f"{where}: perNode {short_size(per_node)} and reserve {short_size(reserve)} together exceed "
        f"volumeLimit {short_size(limit)}: lower perNode to {short_size(max(0, limit - reserve))} at most",
    )
