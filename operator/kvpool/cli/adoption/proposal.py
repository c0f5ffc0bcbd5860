"""Puts what was found into manifests in mode Observe, and says what kvpool cannot control and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kvpool.api import labels
from kvpool.cli.adoption.engines import DEFAULT_PORT, Engines, find_engines
from kvpool.cli.adoption.masters import (
    ADMIN_PORT,
    RPC_PORT,
    Master,
    find_masters,
    masters_without_service,
)
from kvpool.cluster.resources import Obj

_SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "LeaderWorkerSet")


@dataclass(frozen=True, slots=True)
class Existing:
    """Raw objects of one namespace."""

    namespace: str
    services: Sequence[Obj] = ()
    pods: Sequence[Obj] = ()
    gateways: Sequence[Obj] = ()
    routes: Sequence[Obj] = ()
    """HTTPRoutes."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What to apply, what it stands on, and what stays out of reach."""

    manifests: tuple[Obj, ...]
    found: tuple[str, ...]
    cannot: tuple[str, ...]


def propose(existing: Existing) -> Proposal:
    """Look through a namespace."""
    masters, engines = find_masters(existing.services), find_engines(existing.pods)
    manifests = [_pool(master, existing.namespace) for master in masters]
    if engines and not masters:
        manifests.append(_storeless_pool(existing.namespace))
    pool = masters[0].pool if masters else "engines"
    groups, twice = _groups(engines, pool, existing.namespace)
    found = [
        *(f"Mooncake master behind Service {master.service}" for master in masters),
        *(f"{one.role} engines: {len(one.pods)} pods of {_whose(one)}" for one in engines),
        *(f"Gateway {name}" for name in _gateways(existing)),
    ]
    cannot = [*_about_masters(existing, masters), *_about_engines(engines), *twice, *_about_routing(existing)]
    return Proposal((*manifests, *groups), tuple(found), tuple(cannot))


def _manifest(kind: str, name: str, namespace: str, spec: Obj) -> Obj:
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "kvpool.dev/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"mode": "Observe", **spec},
    }


def _pool(master: Master, namespace: str) -> Obj:
    where: Obj = {"serviceRef": {"name": master.service}}
    if master.rpc_port != RPC_PORT:
        where["rpcPort"] = master.rpc_port
    if master.admin_port not in (None, ADMIN_PORT):
        where["adminPort"] = master.admin_port
    return _manifest("KVPool", master.pool, namespace, {"store": {"mooncake": {"master": where}}})


def _storeless_pool(namespace: str) -> Obj:
    return _manifest("KVPool", "engines", namespace, {"store": {"none": {}}})


def _groups(engines: Iterable[Engines], pool: str, namespace: str) -> tuple[list[Obj], list[str]]:
    """One group for each stem; a second workload of the same role has no place in it."""
    by_stem: dict[str, dict[str, Engines]] = {}
    left: list[str] = []
    for one in engines:
        roles = by_stem.setdefault(one.stem, {})
        if one.role in roles:
            left.append(
                f"{_whose(one)}: group {one.stem} has {one.role} engines of {_whose(roles[one.role])}"
            )
        else:
            roles[one.role] = one
    made = [
        _manifest(
            "PDGroup",
            stem[:40].rstrip("-").replace(".", "-"),
            namespace,
            {
                "poolRef": {"name": pool},
                **{role.lower(): _role_spec(one) for role, one in sorted(roles.items())},
            },
        )
        for stem, roles in sorted(by_stem.items())
    ]
    return made, left


def _role_spec(one: Engines) -> Obj:
    spec: Obj = (
        {"workloadRef": {"kind": one.kind, "name": one.name}}
        if one.kind in _SCALED
        else {"podSelector": {"matchLabels": dict(one.labels)}}
    )
    return spec | ({"port": one.port} if one.port != DEFAULT_PORT else {})


def _whose(one: Engines) -> str:
    return f"{one.kind} {one.name}" if one.kind else f"no workload ({one.name} and alike)"


def _about_masters(existing: Existing, masters: Iterable[Master]) -> Iterable[str]:
    for master in masters:
        if master.admin_port is None:
            yield (
                f"the use of the store behind Service {master.service}: it names no port {ADMIN_PORT} "
                f"(the master's admin port); its figures are asked for at {ADMIN_PORT} all the same"
            )
    for pod in masters_without_service(existing.pods, existing.services):
        text = (
            f"the Mooncake master in pod {pod}: no Service selects it, and its address changes with the pod"
        )
        yield f"{text}; make one with the ports {RPC_PORT} and {ADMIN_PORT}"


def _about_engines(engines: Iterable[Engines]) -> Iterable[str]:
    for one in engines:
        if one.kind not in _SCALED and not one.labels:
            yield f"pod {one.pods[0]}: it has no workload, and no labels to select it by"
        elif one.kind not in _SCALED:
            yield f"the number of {one.role} engines of {_whose(one)}: nothing there can be scaled"


def _about_routing(existing: Existing) -> Iterable[str]:
    for route in _routes_of_others(existing):
        yield (
            f"HTTPRoute {route['metadata']['name']}: it is somebody else's; kvpool makes a route of its own "
            "(PDGroup output of type HTTPRoute), which takes over"
        )
    if not _gateways(existing):
        yield (
            f"weights in a gateway: namespace {existing.namespace} has no Gateway of the Gateway API, "
            "and no HTTPRoute that names one elsewhere"
        )


def _routes_of_others(existing: Existing) -> list[Obj]:
    ours = labels.MANAGED_BY, labels.MANAGER
    return [route for route in existing.routes if ours not in (route["metadata"].get("labels") or {}).items()]


def _gateways(existing: Existing) -> list[str]:
    """Gateways of the namespace, and those that its routes name, as `name` or `name in namespace NS`."""
    found = {str(gateway["metadata"]["name"]): None for gateway in existing.gateways}
    for route in existing.routes:
        for parent in route.get("spec", {}).get("parentRefs") or ():
            if parent.get("kind", "Gateway") == "Gateway":
                where = parent.get("namespace", existing.namespace)
                elsewhere = f" in namespace {where}" if where != existing.namespace else ""
                found[f"{parent['name']}{elsewhere}"] = None
    return list(found)
