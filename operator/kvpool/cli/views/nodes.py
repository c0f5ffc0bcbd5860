"""The nodes: agent, lease, units, devices; and the Supernodes with their spares."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvpool.api import KVNode, Supernode
from kvpool.api.conditions import Condition, ConditionType, find_condition
from kvpool.api.kvnode import DeviceVerdict, UnitPhase
from kvpool.cli.screen import Column, Table
from kvpool.cli.views.figures import UNKNOWN, age_seconds, age_text, count_text, joined, size_text
from kvpool.model.instant import Instant
from kvpool.model.observations import NodeFact


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One KVNode. `ready` is its Node's; words are True, False or Unknown as the conditions say."""

    node: str
    ready: str
    agent: str
    """LoopStale for an agent whose loop stands still, else the reason of AgentConnected: Connected,
    Disconnected, NeverHeard."""
    lease: str
    """The reason of LeaseHeld: Granted, Expired, NeverGranted."""
    report_age_seconds: float | None
    units_decided: int
    units_bound: int
    bound_bytes: int
    used_bytes: int | None
    """None when a bound unit does not say."""
    devices: int
    devices_healthy: int
    claimed: int
    quarantined: int
    agent_version: str
    is_well: bool


@dataclass(frozen=True, slots=True)
class SupernodeRow:
    """One Supernode's devices and spares."""

    name: str
    mode: str
    nodes: int
    active: int
    spares_ready: int
    spares_reserved: int
    spares_floor: int
    faulty: int
    unknown: int
    maintenance: tuple[str, ...]
    """`node`, or `node/device`."""


def node_rows(kvnodes: Iterable[KVNode], nodes: Mapping[str, NodeFact], now: Instant) -> list[NodeRow]:
    """Every KVNode, in name order."""
    ordered = sorted(kvnodes, key=lambda kvnode: kvnode.metadata.name)
    return [_node_row(kvnode, nodes.get(kvnode.metadata.name), now) for kvnode in ordered]


def _node_row(kvnode: KVNode, fact: NodeFact | None, now: Instant) -> NodeRow:
    status = kvnode.status
    connected = find_condition(status.conditions, ConditionType.AGENT_CONNECTED)
    healthy_agent = find_condition(status.conditions, ConditionType.AGENT_HEALTHY)
    is_stale = healthy_agent is not None and healthy_agent.status == "False"
    lease = find_condition(status.conditions, ConditionType.LEASE_HELD)
    bound = [unit for unit in status.units if unit.phase is UnitPhase.BOUND]
    used = [unit.used_bytes for unit in bound]
    healthy = sum(device.verdict is DeviceVerdict.HEALTHY for device in status.devices)
    ready = "Gone" if fact is None else {True: "True", False: "False", None: "Unknown"}[fact.ready]
    return NodeRow(
        node=kvnode.metadata.name,
        ready=ready,
        agent=_reason(healthy_agent if is_stale else connected),
        lease=_reason(lease),
        report_age_seconds=age_seconds(status.last_report, now),
        units_decided=len(kvnode.spec.units),
        units_bound=len(bound),
        bound_bytes=sum(min(unit.size_bytes, unit.resident_bytes) for unit in bound),
        used_bytes=sum(size for size in used if size is not None) if None not in used else None,
        devices=len(status.devices),
        devices_healthy=healthy,
        claimed=len(kvnode.spec.claims),
        quarantined=len(kvnode.spec.quarantine),
        agent_version=status.agent_version,
        is_well=_is_true(connected)
        and not is_stale
        and _is_true(lease)
        and ready == "True"
        and healthy == len(status.devices)
        and len(bound) == len(kvnode.spec.units)
        and not kvnode.spec.quarantine,
    )


def _reason(condition: Condition | None) -> str:
    return UNKNOWN if condition is None else condition.reason


def _is_true(condition: Condition | None) -> bool:
    return condition is not None and condition.status == "True"


def node_table(rows: Sequence[NodeRow], note: str = "") -> Table:
    """The table of nodes."""
    columns = (
        Column("NODE"),
        Column("READY"),
        Column("AGENT"),
        Column("LEASE"),
        Column("REPORT", right=True),
        Column("UNITS", right=True),
        Column("BOUND", right=True),
        Column("USED", right=True),
        Column("HEALTHY", right=True),
        Column("CLAIMED", right=True),
        Column("QUAR", right=True),
        Column("VERSION", wide=True),
    )
    cells = [
        (
            row.node,
            row.ready,
            row.agent,
            row.lease,
            age_text(row.report_age_seconds),
            count_text(row.units_bound, row.units_decided),
            size_text(row.bound_bytes),
            size_text(row.used_bytes),
            count_text(row.devices_healthy, row.devices),
            str(row.claimed),
            str(row.quarantined),
            row.agent_version or UNKNOWN,
        )
        for row in rows
    ]
    return Table("Nodes", columns, cells, note or ("" if rows else "no nodes: nothing matches any"))


def supernode_rows(supernodes: Iterable[Supernode]) -> list[SupernodeRow]:
    """Every Supernode, in name order."""
    return [
        SupernodeRow(
            name=supernode.metadata.name,
            mode=supernode.spec.mode,
            nodes=supernode.status.nodes,
            active=supernode.status.devices.active,
            spares_ready=supernode.status.spares.ready,
            spares_reserved=supernode.status.spares.reserved,
            spares_floor=supernode.status.spares.floor,
            faulty=supernode.status.devices.faulty,
            unknown=supernode.status.devices.unknown,
            maintenance=tuple(
                text
                for entry in supernode.spec.maintenance
                for text in ([f"{entry.node}/{device}" for device in entry.devices] or [entry.node])
            ),
        )
        for supernode in sorted(supernodes, key=lambda supernode: supernode.metadata.name)
    ]


def supernode_table(rows: Sequence[SupernodeRow]) -> Table:
    """The table of Supernodes; spares as ready of the floor."""
    columns = (
        Column("SUPERNODE"),
        Column("MODE"),
        Column("NODES", right=True),
        Column("ACTIVE", right=True),
        Column("SPARES", right=True),
        Column("FLOOR", right=True),
        Column("RESERVED", right=True),
        Column("FAULTY", right=True),
        Column("UNKNOWN", right=True),
        Column("MAINTENANCE"),
    )
    cells = [
        (
            row.name,
            row.mode,
            str(row.nodes),
            str(row.active),
            str(row.spares_ready),
            str(row.spares_floor),
            str(row.spares_reserved),
            str(row.faulty),
            str(row.unknown),
            joined(row.maintenance),
        )
        for row in rows
    ]
    return Table("Supernodes", columns, cells)
