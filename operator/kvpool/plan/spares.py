"""Where a seat may go: free, verified devices of one node, and which of them is best."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kvpool.api.engineslot import EngineSlot, Seat
from kvpool.api.pdgroup import Attach, PDGroup, RoleSpec, Standby
from kvpool.api.remap import RemapKind
from kvpool.api.supernode import Supernode
from kvpool.model.ids import DeviceRef
from kvpool.model.observations import AgentView, EngineView
from kvpool.plan.domains import distance, domain_unknown, members_of
from kvpool.plan.draft import Draft
from kvpool.plan.engines import READINESS, Engine, is_engine_pod, is_standby_pod, roles_of
from kvpool.plan.freshness import is_fresh
from kvpool.plan.liveness import HostState
from kvpool.plan.moves import devices_of
from kvpool.plan.sizes import listed


@dataclass(frozen=True, slots=True)
class Place:
    """Free devices of one node that a seat may take, and the engine that holds them."""

    node: str
    devices: tuple[str, ...]
    engine: Engine | None

    @property
    def refs(self) -> tuple[DeviceRef, ...]:
        """The devices by node."""
        return tuple(DeviceRef(self.node, device) for device in self.devices)


@dataclass(slots=True)
class Search:
    """A search for one seat of one slot."""

    draft: Draft
    group: PDGroup
    slot: EngineSlot
    spec: RoleSpec
    kind: RemapKind
    leaving: Seat | None
    supernode: Supernode | None
    avoid: frozenset[DeviceRef] = frozenset()
    """Devices that earlier attempts of the same move gave up."""
    refused: Counter[str] = field(default_factory=Counter)
    """Why devices were passed over, for people."""

    def best(self) -> Place | None:
        """Return the best place; None when there is none, and `refused` says why."""
        return min(self._places(), key=self._rank, default=None)

    def _places(self) -> Iterator[Place]:
        for node in self._nodes():
            agent = self.draft.snapshot.agents[node]
            free = tuple(device for device in device_ids(agent) if self._is_free(node, device))
            if self._may_stay(node):
                free = (*free, *(self.leaving.devices if self.leaving else ()))
            yield from self._places_on(node, agent, free)

    def _nodes(self) -> Iterator[str]:
        for node in sorted(self._scope()):
            state = self.draft.judgement.host(node).state
            agent = self.draft.snapshot.agents.get(node)
            if domain_unknown(self.draft.snapshot, node) is not None:
                self.refused[f"{node}, whose Supernode cannot be read"] += 1
            elif state is HostState.ALIVE and agent is not None and is_fresh(agent, self.draft.now):
                yield node
            else:
                self.refused[f"{node} is not heard"] += 1

    def _scope(self) -> Iterable[str]:
        """A Supernode's nodes; without one each node is a domain of its own, and a first place is free."""
        snapshot = self.draft.snapshot
        if self.supernode is not None:
            near = members_of(snapshot, self.supernode)
            return snapshot.kvnodes if self.supernode.spec.spares.allow_remote else near
        if self.leaving is None or self.spec.attach is Attach.OBSERVE:
            return snapshot.kvnodes
        return [self.leaving.node] if self.leaving.node in snapshot.kvnodes else []

    def _is_free(self, node: str, device: str) -> bool:
        why = why_not_free(self.draft, node, device)
        if why is None and DeviceRef(node, device) in self.avoid:
            why = "given up by an earlier attempt"
        if why is not None:
            self.refused[why] += 1
        return why is None

    def _may_stay(self, node: str) -> bool:
        """Whether the seat may be taken anew where it is: only its epoch is spent, its devices are sound."""
        leaving = self.leaving
        return (
            leaving is not None
            and leaving.node == node
            and self.draft.moves.is_withdrawn(self.slot)
            and all(
                self.draft.stock.why_unfit(ref) is None and ref not in self.draft.reserved
                for ref in devices_of([leaving])
            )
        )

    def _places_on(self, node: str, agent: AgentView, free: tuple[str, ...]) -> Iterator[Place]:
        size = self.spec.devices_per_pod
        held: set[str] = {device.id for device in agent.devices if device.holder}
        for engine in self.draft.stock.idle_engines(node):
            held.update(engine.devices)
            if not set(engine.devices) <= set(free):
                continue
            why = self._why_unfit(engine)
            if why is not None:
                self.refused[f"held by {engine.pod.key}, {why}"] += len(engine.devices)
            elif len(engine.devices) != size:
                self.refused[f"{engine.pod.key} holds {len(engine.devices)}, devicesPerPod is {size}"] += 1
            else:
                yield Place(node, engine.devices, engine)
        held.update(device for engine in agent.engines for device in engine.devices)
        bare = tuple(device for device in free if device not in held)
        if self._takes_bare():
            if len(bare) >= size:
                yield Place(node, bare[:size], None)
            elif bare:
                self.refused[f"fewer than {size} together on one node"] += len(bare)
        elif bare:
            self.refused["without a warm engine"] += len(bare)

    def _why_unfit(self, engine: Engine) -> str | None:
        """Say why an engine may not take the seat; None for one of the role's own, or a warm standby."""
        if is_engine_pod(self.draft.snapshot, self.group, self.spec, engine.pod):
            takes = not engine.standby or self.spec.attach is Attach.STANDBY
            return None if takes else "which may not take the seat"
        if self.spec.standby is None or not engine.standby:
            return "which may not take the seat"
        if not is_standby_pod(self.group, self.spec, engine.pod):
            return "which may not take the seat"
        return why_too_cold(engine.readiness, self.spec.standby)

    def _takes_bare(self) -> bool:
        """Whether devices without an engine will do: an engine that comes later finds its seat."""
        if self.spec.attach is not Attach.STANDBY:
            return False
        return self.spec.standby is None or self.spec.standby.readiness == "Device"

    def _rank(self, place: Place) -> tuple[object, ...]:
        """Smaller is better. A first place keeps existing engines where they are; a move stays close."""
        engine = place.engine
        warmth = 2 if engine is None else int(engine.standby)
        if self.leaving is None:
            name = _natural(str(engine.pod.key)) if engine is not None else ()
            return (warmth, name, place.node, place.devices)
        apart = distance(self.draft.snapshot, self.supernode, self.leaving.node, place.node)
        same = place.node == self.leaving.node and place.devices == self.leaving.devices
        return (not same, apart, 1 if engine is None else 0, place.node, place.devices)

    def shortage(self) -> str:
        """Say what was passed over, and why."""
        counts = [f"{count} {why}" for why, count in sorted(self.refused.items())]
        return listed(counts, most=5) if counts else "no devices are reported at all"


def why_too_cold(readiness: str, standby: Standby) -> str | None:
    """Say how much colder an engine is than the role asks; None for one that is warm enough.

    A word that nobody knows counts as the coldest.
    """
    warm = readiness if readiness in READINESS else READINESS[0]
    if READINESS.index(warm) >= READINESS.index(standby.readiness):
        return None
    return f"which is at {warm}, standby.readiness is {standby.readiness}"


def device_ids(agent: AgentView) -> tuple[str, ...]:
    """Return the node's devices, sorted."""
    return tuple(sorted(device.id for device in agent.devices))


def why_not_free(draft: Draft, node: str, device: str) -> str | None:
    """Say why a device cannot be taken; None when it is free and verified."""
    ref = DeviceRef(node, device)
    if draft.stock.is_claimed(ref):
        return "claimed"
    if ref in draft.reserved:
        return "about to be claimed"
    return draft.stock.why_unfit(ref)


def free_devices(draft: Draft, nodes: Iterable[str]) -> tuple[DeviceRef, ...]:
    """Return the spare devices of some nodes: free, verified, and held by nobody but warm standbys."""
    found = []
    for node in sorted(nodes):
        agent = draft.snapshot.agents.get(node)
        if agent is None or draft.judgement.host(node).state is not HostState.ALIVE:
            continue
        standbys = {
            device
            for engine in agent.engines
            if engine.standby and not _serves_nobody(draft, engine)
            for device in engine.devices
        }
        held = {device.id for device in agent.devices if device.holder}
        held |= {device for engine in agent.engines for device in engine.devices}
        found += [
            DeviceRef(node, device)
            for device in device_ids(agent)
            if (device not in held or device in standbys) and why_not_free(draft, node, device) is None
        ]
    return tuple(found)


def _serves_nobody(draft: Draft, engine: EngineView) -> bool:
    """Whether every role that an engine stands by for asks for a warmer one."""
    pod = draft.pods.by_uid(engine.pod_uid)
    wanted = [
        spec.standby
        for group in draft.snapshot.groups.values()
        for _, spec in roles_of(group)
        if pod is not None and spec.standby is not None and is_standby_pod(group, spec, pod)
    ]
    return bool(wanted) and all(why_too_cold(engine.readiness, standby) for standby in wanted)


def seat_at(index: int, place: Place) -> Seat:
    """Return the seat that a place becomes."""
    return Seat(index=index, node=place.node, devices=place.devices)


def _natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """A sort key in which `pod-10` comes after `pod-9`."""
    words = name.replace("-", " ").replace("/", " ").split()
    return tuple((False, int(word), "") if word.isdecimal() else (True, 0, word) for word in words)
