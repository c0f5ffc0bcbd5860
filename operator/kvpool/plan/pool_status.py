"""A pool's whole status: figures, nodes, conditions, and who enforces what was asked for."""

from kvpool.api.conditions import merge_conditions
from kvpool.api.kvpool import Enforcement, KVPool, KVPoolStatus
from kvpool.plan.demand import TIER_ORDER
from kvpool.plan.pool_conditions import PoolAnswer, pool_verdicts
from kvpool.plan.pool_figures import foreign_bytes, pool_nodes, pool_tiers
from kvpool.plan.pool_sessions import PlannedPool, plan_sessions
from kvpool.plan.scene import Scene


def pool_status(scene: Scene, answer: PoolAnswer) -> tuple[KVPoolStatus, tuple[float, ...]]:
    """Return a pool's status, and when it changes by time alone (monotonic seconds)."""
    pool = answer.demand.pool
    tiers = pool_tiers(scene, answer.demand)
    found = pool_verdicts(scene, answer, tiers)
    planned = _planned(scene, answer)
    verdicts = found.verdicts if planned is None else (*found.verdicts, planned.verdict)
    status = KVPoolStatus(
        observed_generation=pool.metadata.generation,
        tiers=tiers,
        foreign=foreign_bytes(scene.readings.foreign_in(answer.demand.key), scene.now),
        nodes=pool_nodes(scene.readings.of_pool(answer.demand.key)),
        sessions=planned.sessions if planned is not None else None,
        model=planned.model if planned is not None else None,
        enforcement=enforcement(pool),
        conditions=merge_conditions(
            pool.status.conditions, verdicts, pool.metadata.generation, scene.now.text()
        ),
    )
    return status, found.looks


def _planned(scene: Scene, answer: PoolAnswer) -> PlannedPool | None:
    """What the tier planner says; None for a pool that does not ask it."""
    demand = answer.demand
    planning = demand.pool.spec.planning
    if planning is None:
        return None
    admitted: dict[str, int] = dict.fromkeys(TIER_ORDER, 0)
    for reading in scene.readings.of_pool(demand.key):
        admitted[reading.unit.tier] += reading.admitted_bytes
    return plan_sessions(planning, admitted, len(demand.nodes & scene.snapshot.kvnodes.keys()))


def enforcement(pool: KVPool) -> tuple[Enforcement, ...]:
    """List the fields that somebody else enforces; kvpool enforces all others itself."""
    fields: list[Enforcement] = []
    if pool.spec.store.mooncake is not None:
        fields.append(Enforcement(field="spec.store.mooncake.metadataServer", by="Store"))
        fields.append(Enforcement(field="spec.store.mooncake.transport", by="Store"))
    if pool.spec.planning is not None:
        fields.append(Enforcement(field="spec.planning", by="PlannerOnly"))
    return tuple(fields)
