"""Field managers: one for each writer and concern, so that the API shows who set what."""

from typing import Final

from kvpool.api import labels

CAPACITY: Final = "kvpool-capacity"
"""KVNode.spec.units and keeper pods."""
FAILOVER: Final = "kvpool-failover"
"""Slots, Remaps and KVNode.spec.claims."""
STATUS: Final = "kvpool-status"
"""Every status."""
ROUTING: Final = labels.ROUTING_MANAGER
"""What the router outputs write; labels on pods under this with a digest of the output behind it."""
FLEET: Final = "kvpool-fleet"
"""The CA Secret and the trust bundle, and which agents have retired."""
