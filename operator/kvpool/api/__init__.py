"""The API `kvpool.dev/v1alpha1`: one module for each kind."""

from typing import Final

from kvpool.api.engineslot import EngineSlot
from kvpool.api.kvnode import KVNode
from kvpool.api.kvpool import KVPool
from kvpool.api.pdgroup import PDGroup
from kvpool.api.remap import Remap
from kvpool.api.schema import Model
from kvpool.api.supernode import Supernode
from kvpool.api.tierbudget import TierBudget

KINDS: Final[tuple[type[Model], ...]] = (TierBudget, KVPool, PDGroup, Supernode, KVNode, EngineSlot, Remap)

__all__ = ["KINDS", "EngineSlot", "KVNode", "KVPool", "PDGroup", "Remap", "Supernode", "TierBudget"]
