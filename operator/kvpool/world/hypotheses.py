"""A Snapshot as it would be if something were lost or added: the same planning steps then say what follows.

Pure, and never written anywhere: only `kubectl kvpool whatif` looks at these.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kvpool.api import TierBudget
from kvpool.api.quantity import format_quantity, parse_quantity
from kvpool.api.supernode import EvidenceClass
from kvpool.api.tierbudget import Backend
from kvpool.model.instant import Instant
from kvpool.model.observations import AgentView, EvidenceView, LeaseView, SourceView
from kvpool.model.snapshot import Snapshot
from kvpool.plan.budgets import rule

LONG_AGO_SECONDS: Final = 600.0
"""Longer than any lease, and than evidence has to stand."""
SOURCE: Final = "whatif"


def lose_node(snapshot: Snapshot, node: str, now: Instant) -> Snapshot:
    """Return the snapshot in which the node went dark for good: no lease, not Ready, its Node still there."""
    then = now.monotonic_seconds - LONG_AGO_SECONDS
    nodes, agents = dict(snapshot.nodes), dict(snapshot.agents)
    if node in nodes:
        nodes[node] = replace(nodes[node], ready=False, ready_since=then)
    if node in agents:
        known = agents[node]
        lease = LeaseView(then, known.lease.duration_seconds, known.lease.max_skew_seconds)
        agents[node] = replace(known, connected=False, lease=lease, reported_at=min(known.reported_at, then))
    return replace(snapshot, nodes=nodes, agents=agents)


def delete_node(snapshot: Snapshot, node: str) -> Snapshot:
    """Return the snapshot after a person deleted the lost Node as well: its units and devices are gone."""
    return replace(
        snapshot,
        nodes={name: fact for name, fact in snapshot.nodes.items() if name != node},
        agents={name: view for name, view in snapshot.agents.items() if name != node},
        kvnodes={name: kvnode for name, kvnode in snapshot.kvnodes.items() if name != node},
        pods={key: pod for key, pod in snapshot.pods.items() if pod.node != node},
    )


def lose_device(snapshot: Snapshot, node: str, device: str, now: Instant) -> Snapshot:
    """Return the snapshot in which an accelerator fell off its bus a while ago."""
    agent = snapshot.agents[node]
    then = now.monotonic_seconds - LONG_AGO_SECONDS
    gone = EvidenceView(SOURCE, "Lost", EvidenceClass.LOST, 1, then, now.monotonic_seconds)
    devices = tuple(
        replace(view, evidence=(*view.evidence, gone)) if view.id == device else view
        for view in agent.devices
    )
    return replace(snapshot, agents={**snapshot.agents, node: replace(agent, devices=devices)})


def nodes_with_budget(snapshot: Snapshot, tier: str) -> tuple[str, ...]:
    """Name the nodes, in order, that a budget gives bytes of a tier to."""
    rulings = rule(snapshot)
    return tuple(node for node in sorted(snapshot.kvnodes) if rulings.of(node, tier) is not None)


def add_capacity(snapshot: Snapshot, tier: str, added_bytes: int) -> Snapshot:
    """Return the snapshot in which the nodes that a budget names for a tier share `added_bytes` more of it.

    Media, budgets and, for memory, what Nodes can allocate grow by the same share; a rest of less than one
    byte a node is left out. Without such a node nothing changes.
    """
    rulings = rule(snapshot)
    found = {name: rulings.of(name, tier) for name in sorted(snapshot.kvnodes)}
    ruling = {name: budget for name, budget in found.items() if budget is not None}
    if not ruling:
        return snapshot
    share = added_bytes // len(ruling)
    agents = {
        name: _with_medium(view, tier, share) if name in ruling else view
        for name, view in snapshot.agents.items()
    }
    grown = {given.budget for given in ruling.values()}
    in_memory = {name for name, given in ruling.items() if given.backend is Backend.TMPFS}
    nodes = {
        name: replace(fact, allocatable_memory_bytes=fact.allocatable_memory_bytes + share)
        if name in in_memory
        else fact
        for name, fact in snapshot.nodes.items()
    }
    budgets = {
        name: _with_budget(budget, tier, share) if name in grown else budget
        for name, budget in snapshot.budgets.items()
    }
    return replace(snapshot, agents=agents, nodes=nodes, budgets=budgets)


def _with_medium(agent: AgentView, tier: str, share: int) -> AgentView:
    """The first medium of the tier is larger."""
    return replace(agent, sources=tuple(_first_larger(agent.sources, tier, share)))


def _first_larger(sources: Iterable[SourceView], tier: str, share: int) -> Iterable[SourceView]:
    due = True
    for source in sources:
        if due and source.tier == tier:
            due = False
            yield replace(
                source,
                capacity_bytes=source.capacity_bytes + share,
                free_bytes=source.free_bytes + share,
            )
        else:
            yield source


def _with_budget(budget: TierBudget, tier: str, share: int) -> TierBudget:
    tiers = tuple(
        entry.model_copy(update={"per_node": format_quantity(parse_quantity(entry.per_node) + share)})
        if entry.name == tier
        else entry
        for entry in budget.spec.tiers
    )
    return budget.model_copy(update={"spec": budget.spec.model_copy(update={"tiers": tiers})})
