"""What a person asks `whatif` about: read from flags, held against the cluster, and put into its Snapshot."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from kvpool.api.quantity import SIZE_END_BYTES, parse_size
from kvpool.cli.faults import CliError
from kvpool.model.ids import DeviceRef
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.demand import TIER_ORDER
from kvpool.plan.sizes import MEBIBYTE, bytes_or_none, listed, short_size
from kvpool.world.hypotheses import add_capacity, delete_node, lose_device, lose_node, nodes_with_budget

_PERCENTAGE: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,15})?%")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """All that is supposed at once."""

    nodes: tuple[str, ...] = ()
    """Nodes that are lost for good."""
    devices: tuple[DeviceRef, ...] = ()
    """Accelerators that are lost, on nodes that stay."""
    added: tuple[tuple[str, int], ...] = ()
    """Tiers, each once, and the bytes that are added to them."""
    down: Fraction | None = None
    """Share of the time that each accelerator is down; None: not asked."""

    @classmethod
    def of(cls, lost: Sequence[str], added: Sequence[str], fail_rate: str | None) -> "Hypothesis":
        """Read the flags' values. Raises CliError."""
        places = [_place(text) for text in lost]
        return cls(
            nodes=tuple(sorted({node for node, device in places if not device})),
            devices=tuple(sorted({DeviceRef(node, device) for node, device in places if device})),
            added=_sums(_addition(text) for text in added),
            down=_share(fail_rate) if fail_rate is not None else None,
        )

    def check(self, snapshot: Snapshot) -> None:
        """Hold it against the cluster. Raises CliError when something in it is not there."""
        known = sorted(snapshot.kvnodes)
        for node in (*self.nodes, *(ref.node for ref in self.devices)):
            if node not in snapshot.kvnodes:
                raise CliError(f"--lose: kvpool knows no node {node!r}; it knows {listed(known) or 'none'}")
        for ref in self.devices:
            agent = snapshot.agents.get(ref.node)
            ids = [view.id for view in agent.devices] if agent is not None else []
            if ref.device not in ids:
                found = listed(sorted(ids)) or "none"
                raise CliError(f"--lose: node {ref.node} has no device {ref.device!r}; it has {found}")
        for tier, size in self.added:
            wrong = _why_not_added(snapshot, tier, size)
            if wrong:
                raise CliError(f"--add tier={tier}:{short_size(size)}: {wrong}")

    def struck(self, snapshot: Snapshot, now: Instant) -> Snapshot:
        """Return the snapshot right after it happened; lost Nodes are still listed."""
        for node in self.nodes:
            snapshot = lose_node(snapshot, node, now)
        for ref in self.devices:
            snapshot = lose_device(snapshot, ref.node, ref.device, now)
        for tier, size in self.added:
            snapshot = add_capacity(snapshot, tier, size)
        return snapshot

    def settled(self, snapshot: Snapshot, now: Instant) -> Snapshot:
        """Return the snapshot after a person also deleted the lost Nodes."""
        snapshot = self.struck(snapshot, now)
        for node in self.nodes:
            snapshot = delete_node(snapshot, node)
        return snapshot

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Say what is supposed, a line each."""
        found = [f"node {node} goes dark for good" for node in self.nodes]
        found += [f"device {ref.device} of node {ref.node} is lost" for ref in self.devices]
        for tier, size in self.added:
            nodes = nodes_with_budget(snapshot, tier)
            share = short_size(size // len(nodes))
            found.append(f"{short_size(size)} more of {tier}: {share} on each of {len(nodes)} nodes")
        if self.down is not None:
            found.append(f"each accelerator is down {float(self.down * 100):.15g}% of the time")
        return found


def _place(text: str) -> tuple[str, str]:
    kind, _, rest = text.partition("/")
    node, slash, device = rest.partition("/")
    if kind == "node" and node and not slash:
        return node, ""
    if kind == "device" and node and device:
        return node, device
    raise CliError(f"--lose {text!r} is neither node/NAME nor device/NODE/ID: write node/node-7")


def _addition(text: str) -> tuple[str, int]:
    word, _, rest = text.partition("=")
    tier, _, size = rest.partition(":")
    if word != "tier" or tier not in TIER_ORDER or not size:
        known = ", ".join(TIER_ORDER)
        raise CliError(f"--add {text!r} is not tier=TIER:SIZE with one of {known}: write tier=CXL:8Ti")
    try:
        return tier, parse_size(size)
    except ValueError as error:
        raise CliError(f"--add tier={tier}: {error}") from None


def _sums(additions: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    sums: dict[str, int] = {}
    for tier, size_bytes in additions:
        sums[tier] = sums.get(tier, 0) + size_bytes
    return tuple(sums.items())


def _why_not_added(snapshot: Snapshot, tier: str, added_bytes: int) -> str:
    """Why the nodes cannot have so much more of a tier; empty when they can."""
    nodes = nodes_with_budget(snapshot, tier)
    if not nodes:
        return f"no TierBudget gives {tier} to any node: add the tier to one first"
    if added_bytes // len(nodes) < MEBIBYTE:
        least = short_size(len(nodes) * MEBIBYTE)
        return f"shared by {len(nodes)} nodes that is less than 1Mi on each: add {least} or more"
    budgets = add_capacity(snapshot, tier, added_bytes).budgets
    for name, budget in sorted(budgets.items()):
        for entry in budget.spec.tiers:
            size_bytes = bytes_or_none(entry.per_node) or 0
            if entry.name == tier and size_bytes >= SIZE_END_BYTES:
                each = short_size(size_bytes)
                return f"perNode of TierBudget {name} would be {each}, and has to be below 8Ei: add less"
    return ""


def _share(text: str) -> Fraction:
    share = Fraction(text.removesuffix("%")) / 100 if _PERCENTAGE.fullmatch(text) else Fraction(0)
    if not 0 < share < 1:
        raise CliError(f"--fail-rate {text!r}: write a percentage above 0% and below 100%, such as 0.1%")
    return share
