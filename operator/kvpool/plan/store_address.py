"""Where the segments of a pool's units are mounted."""

from kvpool.api.kvnode import UnitStore
from kvpool.model.decisions import Reason
from kvpool.plan.demand import Demand
from kvpool.plan.scene import Scene


def store_of(scene: Scene, demand: Demand) -> UnitStore | None:
    """Return where the pool's segments are mounted; None for no store, or while its address is unknown."""
    mooncake = demand.pool.spec.store.mooncake
    view = scene.snapshot.stores.get(demand.key)
    if mooncake is None or view is None or not view.rpc_address:
        return None
    return UnitStore(
        master=view.rpc_address,
        admin=view.admin_address,
        metadata_server=mooncake.metadata_server,
        protocol=mooncake.transport.protocol,
        devices=",".join(mooncake.transport.devices),
    )


def store_unknown(scene: Scene, demand: Demand) -> Reason | None:
    """Say why the pool's units cannot be bound yet: nobody knows where they would be mounted."""
    mooncake = demand.pool.spec.store.mooncake
    if mooncake is None or store_of(scene, demand) is not None:
        return None
    reference, view = mooncake.master.service_ref, scene.snapshot.stores.get(demand.key)
    if reference is None:
        return Reason("StoreUnknown", "the store's master has not been asked yet")
    said = view.message if view is not None and view.message else "it has not been looked up yet"
    text = f"the address of Service {demand.key.namespace}/{reference.name} is unknown ({said}): check "
    text += "spec.store.mooncake.master.serviceRef, and that the Service exists and its pods are ready"
    return Reason("StoreUnknown", text)
