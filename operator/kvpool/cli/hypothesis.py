"""What a person asks `whatif` about: read from flags, held against the cluster, and put into its Snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from kvpool.api.quantity import parse_quantity
from kvpool.cli.faults import CliError
from kvpool.model.ids import DeviceRef
from kvpool.model.instant import Instant
from kvpool.model.snapshot import Snapshot
from kvpool.plan.demand import TIER_ORDER
from kvpool.plan.sizes import listed, short_size
from kvpool.world.hypotheses import add_capacity, delete_node, lose_device, lose_node, nodes_with_budget


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """All that is supposed at once."""

    nodes: tuple[str, ...] = ()
    """Nodes that are lost for good."""
    devices: tuple[DeviceRef, ...] = ()
    """Accelerators that are lost, on nodes that stay."""
    added: tuple[tuple[str, int], ...] = ()
    """Tiers and the bytes that are added to them."""
    down: Fraction | None = None
    """Share of the time that each accelerator is down; None: not asked."""

    @classmethod
    def of(cls, lost: Sequence[str], added: Sequence[str], fail_rate: str | None) -> "Hypothesis":
        """Read the flags' values. Raises CliError."""
        places = [_place(text) for text in lost]
        return cls(
            nodes=tuple(sorted({node for node, device in places if not device})),
            devices=tuple(sorted({DeviceRef(node, device) for node, device in places if device})),
            added=tuple(_addition(text) for text in added),
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
            if not nodes_with_budget(snapshot, tier):
                text = f"no TierBudget gives {tier} to any node: add the tier to one first"
                raise CliError(f"--add tier={tier}:{short_size(size)}: {text}")

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
            found.append(f"each accelerator is down {float(self.down * 100):g}% of the time")
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
        size_bytes = parse_quantity(size)
    except ValueError as error:
        raise CliError(f"--add {text!r}: {error}") from None
    if size_bytes <= 0:
        raise CliError(f"--add {text!r}: the size must be above 0, not {size}")
    return tier, size_bytes


def _share(text: str) -> Fraction:
    try:
        share = Fraction(text.removesuffix("%")) / 100
    except (ValueError, ZeroDivisionError):
        raise CliError(f"--fail-rate {text!r} is no percentage: write 0.1%") from None
    if not text.endswith("%") or not 0 < share < 1:
        raise CliError(f"--fail-rate {text!r}: write a percentage above 0% and below 100%, such as 0.1%")
    return share
