"""Which pod holds a device: kubelet names pods by namespace and name, decisions are made by UID."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.observations import HOLDER_UNKNOWN, AgentView, DeviceView, PodFact

STAMP_SECONDS: Final = 1.0
"""The API server stamps objects with whole seconds, rounded down."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})


def with_holders(
    agents: Mapping[str, AgentView], pods: Mapping[ObjectKey, PodFact], now: Instant
) -> dict[str, AgentView]:
    """Return the agents with the UIDs of the pods that kubelet names as holders, where they are known."""
    return {node: _resolved(agent, pods, now) for node, agent in agents.items()}


def _resolved(agent: AgentView, pods: Mapping[ObjectKey, PodFact], now: Instant) -> AgentView:
    if not any(device.holder_pods for device in agent.devices):
        return agent
    devices = tuple(
        replace(device, holder=holder_of(device, agent, pods, now)) if device.holder_pods else device
        for device in agent.devices
    )
    return replace(agent, devices=devices)


def holder_of(device: DeviceView, agent: AgentView, pods: Mapping[ObjectKey, PodFact], now: Instant) -> str:
    """Return the UID of the pod that holds a device; its namespace/name when no pod can be told to be it.

    Of several pods those that ended hold nothing: kubelets before Kubernetes 1.34 list them until their
    objects are gone. When more than one is left, nobody knows which it is. A device is never free here.
    """
    found = {name: _pod_meant(name, agent, pods, now) for name in device.holder_pods}
    left = [name for name, pod in found.items() if pod is None or pod.phase not in _ENDED]
    names = left or list(found)
    if len(names) != 1:
        return HOLDER_UNKNOWN
    pod = found[names[0]]
    return pod.uid if pod is not None else str(names[0])


def _pod_meant(
    name: ObjectKey, agent: AgentView, pods: Mapping[ObjectKey, PodFact], now: Instant
) -> PodFact | None:
    """The pod of that name that kubelet meant: on its node, and there before kubelet spoke."""
    pod = pods.get(name)
    if pod is None or pod.node != agent.node or agent.holders_at is None:
        return None
    try:
        created_at = now.monotonic_of(pod.created_at)
    except (TypeError, ValueError):
        return None  # nobody knows when it was created
    return pod if created_at + STAMP_SECONDS <= agent.holders_at else None
