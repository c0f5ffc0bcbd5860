"""Clusters of any size as the API server would send them: all units bound, a warm standby on every node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kvpool.api import KVNode
from kvpool.api.kvnode import UnitPhase
from kvpool.api.supernode import EvidenceClass
from kvpool.cluster.resources import (
    ENGINE_SLOTS,
    KV_NODES,
    KV_POOLS,
    NODES,
    PD_GROUPS,
    PODS,
    SUPERNODES,
    TIER_BUDGETS,
    Obj,
    Resource,
)
from kvpool.model.decisions import Plan, WriteSlotStatus, WriteStatus
from kvpool.model.ids import ObjectKey
from kvpool.model.instant import Instant
from kvpool.model.observations import (
    AgentView,
    DeviceView,
    EngineView,
    EvidenceView,
    OutputAck,
    SeatPhase,
    SeatView,
    UnitView,
)
from kvpool.model.snapshot import Snapshot
from kvpool.plan.keeper_names import keeper_name
from tests.builders.objects import an_agent, dram

NODES_EACH = 16
"""Nodes of one Supernode, and slots of its group: as many as one HTTPRoute takes."""

NOW = Instant(1000.0, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
EPOCH = 3
SLOT_EPOCH = (EPOCH << 20) + 1
UNIT_BYTES = 4 << 30
NAMESPACE = "inference"


def objects(nodes: int) -> Iterator[tuple[Resource, Obj]]:
    """Every object of a cluster of that many nodes."""
    budget = {"name": "DRAM", "perNode": "8Gi", "reserve": "4Gi"}
    yield TIER_BUDGETS, _object("gpu", "", {"mode": "Enforce", "tiers": [budget]})
    tier = {"name": "DRAM", "size": str(nodes * UNIT_BYTES)}
    yield KV_POOLS, _object("chat", NAMESPACE, {"mode": "Enforce", "tiers": [tier], "store": {"none": {}}})
    for first in range(0, nodes, NODES_EACH):
        selector = {"matchLabels": {"sn": _domain(first)}}
        yield SUPERNODES, _object(_domain(first), "", {"mode": "Enforce", "nodeSelector": selector})
        yield PD_GROUPS, _object(_group(first), NAMESPACE, _group_spec(first, min(NODES_EACH, nodes - first)))
    for index in range(nodes):
        yield NODES, _node(index)
        kvnode = _kvnode(index)
        yield KV_NODES, kvnode
        yield ENGINE_SLOTS, _slot(index)
        for app in ("decode", "standby"):
            yield PODS, _pod(f"{app}-{index}", NAMESPACE, index, {"app": f"{app}-{_domain(index)}"})
        keeper = keeper_name(KVNode.parse(kvnode).spec.units[0], _name(index))
        yield PODS, _pod(keeper, "kvpool-system", index, _keeper_labels(index))


def agents(nodes: int) -> dict[str, AgentView]:
    """What every node's agent said a moment ago."""
    return {_name(index): _agent(index) for index in range(nodes)}


def acks(nodes: int) -> tuple[OutputAck, ...]:
    """Every output carries the full weights."""
    at = NOW.monotonic_seconds - 60
    return tuple(
        OutputAck(
            group=ObjectKey(NAMESPACE, _group(first)),
            output="edge",
            revision=1,
            observed=True,
            at=at,
            written_at=at,
            weights={_slot_name(index): 100 for index in range(first, min(first + NODES_EACH, nodes))},
        )
        for first in range(0, nodes, NODES_EACH)
    )


def with_a_fatal_device(snapshot: Snapshot) -> Snapshot:
    """The same cluster, where the first node's agent has just reported its engine's device."""
    agent, at = snapshot.agents[_name(0)], NOW.monotonic_seconds
    found = EvidenceView("driver", "79", EvidenceClass.FATAL, 1, at, at, (at,))
    devices = (replace(agent.devices[0], evidence=(found,)), *agent.devices[1:])
    return replace(snapshot, agents={**snapshot.agents, _name(0): replace(agent, devices=devices)})


def with_statuses(snapshot: Snapshot, plan: Plan) -> Snapshot:
    """The same cluster once the statuses that `plan` writes are there: then there is nothing to do."""
    kept: dict[str, dict[Any, Any]] = {
        "TierBudget": dict(snapshot.budgets),
        "KVPool": dict(snapshot.pools),
        "PDGroup": dict(snapshot.groups),
        "Supernode": dict(snapshot.supernodes),
        "KVNode": dict(snapshot.kvnodes),
        "EngineSlot": dict(snapshot.slots),
    }
    for action in plan.actions:
        if isinstance(action, WriteStatus | WriteSlotStatus):
            kind = action.kind if isinstance(action, WriteStatus) else "EngineSlot"
            key = action.key if action.key.namespace else action.key.name
            kept[kind][key] = kept[kind][key].model_copy(update={"status": action.status})
    return replace(
        snapshot,
        budgets=kept["TierBudget"],
        pools=kept["KVPool"],
        groups=kept["PDGroup"],
        supernodes=kept["Supernode"],
        kvnodes=kept["KVNode"],
        slots=kept["EngineSlot"],
    )


def _name(index: int) -> str:
    return f"node-{index:04d}"


def _domain(index: int) -> str:
    return f"sn-{index // NODES_EACH}"


def _group(index: int) -> str:
    return f"chat-{_domain(index)}"


def _slot_name(index: int) -> str:
    return f"{_group(index)}-decode-{index % NODES_EACH}"


def _object(name: str, namespace: str, spec: Obj) -> Obj:
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "generation": 1}
    if namespace:
        metadata["namespace"] = namespace
    return {"metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}


def _group_spec(first: int, slots: int) -> Obj:
    domain = _domain(first)
    output = {"name": "edge", "type": "HTTPRoute", "httpRoute": {"parentRef": {"name": "gateway"}}}
    decode = {
        "podSelector": {"matchLabels": {"app": f"decode-{domain}"}},
        "instances": slots,
        "attach": "Standby",
        "standby": {"podSelector": {"matchLabels": {"app": f"standby-{domain}"}}},
    }
    return {
        "mode": "Enforce",
        "poolRef": {"name": "chat"},
        "supernodeRef": {"name": domain},
        "decode": decode,
        "routing": {"outputs": [output]},
    }


def _node(index: int) -> Obj:
    node = _object(_name(index), "", {})
    node["metadata"]["labels"] = {
        "sn": _domain(index),
        "kvpool.dev/board": f"board-{index}",
        "kvpool.dev/rack": f"rack-{index // 4}",
    }
    node["status"] = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": f"10.1.{index // 250}.{index % 250 + 1}"}],
        "allocatable": {"memory": "128Gi"},
        "nodeInfo": {"bootID": f"boot-{_name(index)}-1"},
    }
    return node


def _kvnode(index: int) -> Obj:
    claim = {"device": "dev0", "slot": f"{NAMESPACE}/{_slot_name(index)}", "epoch": SLOT_EPOCH}
    unit = {
        "name": f"{NAMESPACE}.chat.dram.n0",
        "pool": f"{NAMESPACE}/chat",
        "poolUid": "uid-chat",
        "tier": "DRAM",
        "sizeBytes": UNIT_BYTES,
        "numaNode": 0,
        "backend": "tmpfs",
        "reserveBytes": 4 << 30,
    }
    spec = {"operatorEpoch": EPOCH, "revision": 1, "units": [unit], "claims": [claim]}
    return _object(_name(index), "", spec) | {"status": {"bootID": f"boot-{_name(index)}-1"}}


def _slot(index: int) -> Obj:
    spec = {
        "operatorEpoch": EPOCH,
        "pdGroup": _group(index),
        "role": "Decode",
        "instance": index % NODES_EACH,
        "seats": [{"index": 0, "node": _name(index), "devices": ["dev0"]}],
        "epoch": SLOT_EPOCH,
    }
    slot = _object(_slot_name(index), NAMESPACE, spec)
    slot["metadata"]["finalizers"] = ["kvpool.dev/fence"]
    return slot


def _pod(name: str, namespace: str, index: int, labels: dict[str, str]) -> Obj:
    requests = {"requests": {"memory": "5Gi" if namespace == "kvpool-system" else "1Gi"}}
    pod = _object(name, namespace, {"nodeName": _name(index), "containers": [{"resources": requests}]})
    pod["metadata"]["labels"] = labels
    pod["status"] = {
        "phase": "Running",
        "podIP": f"10.2.{index // 250}.{index % 250 + 1}",
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return pod


def _keeper_labels(index: int) -> dict[str, str]:
    return {
        "app.kubernetes.io/managed-by": "kvpool",
        "app.kubernetes.io/component": "keeper",
        "kvpool.dev/node": _name(index),
        "kvpool.dev/unit-generation": "1",
    }


def _agent(index: int) -> AgentView:
    name, slot = _name(index), ObjectKey(NAMESPACE, _slot_name(index))
    holders = {"dev0": f"decode-{index}", "dev1": f"standby-{index}"}
    at, endpoint = NOW.monotonic_seconds, f"10.2.0.{index % 250 + 1}:8000"
    unit = UnitView(
        name=f"{NAMESPACE}.chat.dram.n0",
        generation=1,
        phase=UnitPhase.BOUND,
        size_bytes=UNIT_BYTES,
        resident_bytes=UNIT_BYTES,
        used_bytes=UNIT_BYTES // 2,
        placement={0: UNIT_BYTES},
        placement_verified=True,
        segment="",
    )
    seat = SeatView(
        slot,
        SLOT_EPOCH,
        SeatPhase.ATTACHED,
        f"uid-decode-{index}",
        f"{NAMESPACE}/decode-{index}",
        endpoint,
        "Process",
    )
    return replace(
        an_agent(name, dram(0, "64Gi", "4Gi"), at=at),
        hello_at=at - 600,
        applied_revision=1,
        plan_revision=1,
        units=(unit,),
        seats=(seat,),
        devices=tuple(
            DeviceView(device, f"{name}-{device}", f"uid-{pod}", (), observed=True)
            for device, pod in holders.items()
        ),
        engines=tuple(
            EngineView(
                pod_uid=f"uid-{pod}",
                pod_name=f"{NAMESPACE}/{pod}",
                endpoint=endpoint,
                devices=(device,),
                standby=device == "dev1",
                readiness="EngineReady",
                slot=str(slot) if device == "dev0" else "",
                requests_running=0,
                hbm_kv_bytes=0,
            )
            for device, pod in holders.items()
        ),
    )
