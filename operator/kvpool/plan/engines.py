"""Which pods are a role's engines and standbys, and which of them sit on no seat."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kvpool.api.common import LabelSelector, Role
from kvpool.api.pdgroup import PDGroup, RoleSpec
from kvpool.model.ids import ObjectKey
from kvpool.model.observations import AgentView, PodFact, SeatPhase
from kvpool.model.snapshot import Snapshot

READINESS: Final = ("Device", "WeightsLoaded", "EngineReady")
"""How warm an engine can be, coldest first."""

_OVER: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that sits on no seat, and the devices it holds."""

    pod: PodFact
    devices: tuple[str, ...]
    standby: bool
    readiness: str
    speaks: bool
    """Whether it is on the agent's local API."""


def roles_of(group: PDGroup) -> tuple[tuple[Role, RoleSpec], ...]:
    """Return the group's roles."""
    both = ((Role.PREFILL, group.spec.prefill), (Role.DECODE, group.spec.decode))
    return tuple((role, spec) for role, spec in both if spec is not None)


def role_spec(group: PDGroup, role: Role) -> RoleSpec | None:
    """Return what the group says about a role."""
    return dict(roles_of(group)).get(role)


def selector_of(snapshot: Snapshot, group: PDGroup, spec: RoleSpec) -> LabelSelector | None:
    """Return what selects the role's engine pods; None when that is not known (yet)."""
    if spec.pod_selector is not None:
        return spec.pod_selector
    if spec.workload_ref is None:
        return None
    return snapshot.workload_selectors.get(workload_key(group, spec))


def workload_key(group: PDGroup, spec: RoleSpec) -> str:
    """Return `namespace/Kind/name` of the role's workload; empty without one."""
    if spec.workload_ref is None:
        return ""
    return f"{group.metadata.namespace}/{spec.workload_ref.kind}/{spec.workload_ref.name}"


def is_standby_pod(group: PDGroup, spec: RoleSpec, pod: PodFact) -> bool:
    """Whether the role's standby selector names the pod."""
    return (
        spec.standby is not None
        and pod.key.namespace == group.metadata.namespace
        and spec.standby.pod_selector.matches(pod.labels)
    )


def is_engine_pod(snapshot: Snapshot, group: PDGroup, spec: RoleSpec, pod: PodFact) -> bool:
    """Whether the pod is one of the role's engines, and no standby."""
    selector = selector_of(snapshot, group, spec)
    return (
        selector is not None
        and pod.key.namespace == group.metadata.namespace
        and selector.matches(pod.labels)
        and not is_standby_pod(group, spec, pod)
    )


def engine_pods(snapshot: Snapshot, group: PDGroup, spec: RoleSpec) -> tuple[PodFact, ...]:
    """Return the role's engine pods that live, by name."""
    found = (
        (key, pod)
        for key, pod in snapshot.pods.items()
        if lives(pod) and is_engine_pod(snapshot, group, spec, pod)
    )
    return tuple(pod for _, pod in sorted(found))


def lives(pod: PodFact) -> bool:
    """Whether the pod is neither over nor being deleted."""
    return not pod.deleting and pod.phase not in _OVER


class PodBook:
    """Pods by UID and by node."""

    def __init__(self, pods: Mapping[ObjectKey, PodFact]) -> None:
        self._by_uid = {pod.uid: pod for pod in pods.values()}

    def by_uid(self, uid: str) -> PodFact | None:
        """Return the pod of that UID."""
        return self._by_uid.get(uid)

    def idle_engines(self, agent: AgentView) -> tuple[Engine, ...]:
        """Return the node's engines without a seat: those on the local API, and pods that hold devices."""
        speaking = {engine.pod_uid for engine in agent.engines}
        seated = {
            seat.pod_uid for seat in agent.seats if seat.pod_uid and seat.phase is not SeatPhase.RELEASED
        }
        found = []
        for view in agent.engines:
            pod = self._by_uid.get(view.pod_uid)
            if pod is not None and lives(pod) and not view.slot and view.pod_uid not in seated:
                found.append(Engine(pod, tuple(sorted(view.devices)), view.standby, view.readiness, True))
        for uid, devices in _held(agent, speaking | seated):
            pod = self._by_uid.get(uid)
            if pod is not None and lives(pod):
                found.append(Engine(pod, devices, standby=False, readiness="EngineReady", speaks=False))
        return tuple(sorted(found, key=lambda engine: engine.pod.key))


def _held(agent: AgentView, known: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Devices by the UID of the pod that holds them, for pods that are not known otherwise."""
    held: dict[str, list[str]] = {}
    for device in agent.devices:
        if device.holder and device.holder not in known:
            held.setdefault(device.holder, []).append(device.id)
    return [(uid, tuple(sorted(devices))) for uid, devices in sorted(held.items())]
