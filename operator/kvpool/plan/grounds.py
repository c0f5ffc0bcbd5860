"""The nodes as places for units: which may take new ones, and which media they have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kvpool.api.kvnode import KVNode, UnitPhase, UnitSpec
from kvpool.api.tierbudget import Backend, NumaPolicy
from kvpool.model.decisions import Reason
from kvpool.model.instant import Instant
from kvpool.model.observations import AgentView, NodeFact, SourceView, UnitView
from kvpool.model.snapshot import Snapshot
from kvpool.plan.budgets import Ruling
from kvpool.plan.domains import domain_unknown
from kvpool.plan.freshness import is_fresh, silence_text
from kvpool.plan.sizes import listed

MAINTENANCE: Final = "Maintenance"


@dataclass(frozen=True, slots=True)
class Site:
    """A place for one unit of a tier: a NUMA node (or -1) of a node, and the medium there."""

    node: str
    numa_node: int
    source: str
    backend: Backend
    path: str = ""
    reserve_bytes: int = 0
    """Bytes of the medium that stay free beside the unit."""


@dataclass(frozen=True, slots=True)
class Ground:
    """One node: its object, its agent, its decided units."""

    name: str
    fact: NodeFact | None
    kvnode: KVNode | None
    agent: AgentView | None
    """Only when its report is fresh: figures of a stale report are unknown."""
    blocked: Reason | None
    """Why the node takes nothing new, whatever the tier."""

    @property
    def units(self) -> tuple[UnitSpec, ...]:
        """Units decided for the node."""
        return self.kvnode.spec.units if self.kvnode else ()

    def views(self, unit: str) -> tuple[UnitView, ...]:
        """Return what the agent freshly says of every generation of a unit, newest first."""
        found = [view for view in (self.agent.units if self.agent else ()) if view.name == unit]
        return tuple(sorted(found, key=lambda view: -view.generation))

    def view(self, unit: UnitSpec) -> UnitView | None:
        """Return what the agent freshly says of a unit: of its decided generation, else of the newest."""
        found = self.views(unit.name)
        decided = [view for view in found if view.generation == unit.generation]
        return next(iter((*decided, *found)), None)


def survey(snapshot: Snapshot, now: Instant) -> Mapping[str, Ground]:
    """Look at every node that has a Node or a KVNode object, in name order."""
    under_maintenance = _maintained(snapshot)
    grounds = {}
    for name in sorted({*snapshot.nodes, *snapshot.kvnodes}):
        fact, kvnode = snapshot.nodes.get(name), snapshot.kvnodes.get(name)
        agent = snapshot.agents.get(name)
        blocked = _blocked(name, fact, kvnode, agent, now, under_maintenance)
        blocked = blocked or domain_unknown(snapshot, name)
        grounds[name] = Ground(name, fact, kvnode, agent if is_fresh(agent, now) else None, blocked)
    return grounds


def _blocked(
    name: str,
    fact: NodeFact | None,
    kvnode: KVNode | None,
    agent: AgentView | None,
    now: Instant,
    under_maintenance: Mapping[str, str],
) -> Reason | None:
    if fact is None:
        return Reason("NodeGone", "its Node object is gone")
    if not fact.ready:
        return Reason("NotReady", "its Node is not Ready")
    if kvnode is None or kvnode.metadata.deletion_timestamp is not None:
        return Reason("NoKVNode", "its KVNode is not there yet")
    if not is_fresh(agent, now):
        return Reason("AgentSilent", silence_text(agent, now))
    if name in under_maintenance:
        return Reason(MAINTENANCE, f"Supernode {under_maintenance[name]} lists it for maintenance")
    return None


def _maintained(snapshot: Snapshot) -> dict[str, str]:
    """Nodes that a Supernode lists as a whole, and which Supernode."""
    return {
        entry.node: supernode.metadata.name
        for _, supernode in sorted(snapshot.supernodes.items(), reverse=True)
        for entry in supernode.spec.maintenance
        if not entry.devices
    }


def refusal(ground: Ground, ruling: Ruling) -> Reason | None:
    """Say why a node takes nothing new of one tier; None when it may."""
    if ground.blocked is not None:
        return ground.blocked
    if ruling.unsound is not None:
        return ruling.unsound
    finding = _finding(ground, ruling.tier)
    if finding is not None:
        return Reason("VerifyFinding", finding)
    if not sites_of(ground, ruling):
        return Reason("NoMedium", _no_medium(ground, ruling))
    return None


def _finding(ground: Ground, tier: str) -> str | None:
    """A unit of the tier that verification found wrong; findings of a bound unit are only remarks."""
    for unit in ground.units:
        view = ground.view(unit) if unit.tier == tier else None
        if view is not None and view.phase is UnitPhase.DEGRADED:
            what = view.message or ", ".join(reason for reason, _ in view.findings)
            return f"verify found unit {unit.name} degraded: {what}"
    return None


def _no_medium(ground: Ground, ruling: Ruling) -> str:
    has = sorted(source.key for source in ground.agent.sources) if ground.agent else []
    at = f" at {ruling.spec.path}" if ruling.spec.path else ""
    found = listed(has) or "none"
    return f"its agent reports no {ruling.backend.value} medium for {ruling.tier}{at} (it has {found})"


def media_of(ground: Ground, ruling: Ruling) -> tuple[SourceView, ...]:
    """Return the media that can hold the tier, one for each NUMA node, in order of NUMA node."""
    if ground.agent is None:
        return ()
    fitting = [
        source
        for source in ground.agent.sources
        if source.tier == ruling.tier
        and source.backend == ruling.backend
        and holds_path(source, ruling.spec.path)
    ]
    chosen: dict[int, SourceView] = {}
    for source in sorted(fitting, key=lambda source: (-len(_mount(source)), source.key)):
        chosen.setdefault(source.numa_node, source)
    return tuple(chosen[numa_node] for numa_node in sorted(chosen))


def _mount(source: SourceView) -> str:
    """The folder of a file medium: what follows the colon of its key."""
    return source.key.partition(":")[2]


def holds_path(source: SourceView, path: str | None) -> bool:
    """Tell whether a folder lies on a file medium; every medium holds no folder at all."""
    if not path:
        return True
    mount = _mount(source).rstrip("/")
    return path == mount or path.startswith(f"{mount}/")


def sites_of(ground: Ground, ruling: Ruling, held: Iterable[int] = ()) -> tuple[Site, ...]:
    """Return the places that the NUMA policy chooses; `held`: NUMA nodes that hold a unit of the pool now."""
    media = media_of(ground, ruling)
    policy = ruling.spec.numa_policy
    if policy is NumaPolicy.NODES:
        media = tuple(source for source in media if source.numa_node in ruling.spec.numa_nodes)
    elif policy is NumaPolicy.LOCAL and media:
        kept = set(held)
        media = (min(media, key=lambda m: (m.numa_node not in kept, -m.free_bytes, m.numa_node)),)
    reserves = reserves_of(ground, ruling)
    return tuple(_site(ground.name, ruling, source, reserves[source.key]) for source in media)


def _site(node: str, ruling: Ruling, source: SourceView, reserve_bytes: int) -> Site:
    path = (ruling.spec.path or _mount(source)) if ruling.backend is Backend.FILE else ""
    return Site(node, source.numa_node, source.key, ruling.backend, path, reserve_bytes)


def reserves_of(ground: Ground, ruling: Ruling) -> Mapping[str, int]:
    """Share the tier's reserve out over its media, in proportion to their size; by key, rounded up."""
    media = media_of(ground, ruling)
    whole = sum(source.capacity_bytes for source in media)
    return {
        source.key: -(-ruling.reserve_bytes * source.capacity_bytes // whole)
        if whole
        else ruling.reserve_bytes
        for source in media
    }
