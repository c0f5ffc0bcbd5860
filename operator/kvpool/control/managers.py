"""Field managers: one for each writer and concern, so that the API shows who set what."""

from typing import Final

CAPACITY: Final = "kvpool-capacity"
"""KVNode.spec.units and keeper pods."""
FAILOVER: Final = "kvpool-failover"
"""Slots, Remaps and KVNode.spec.claims."""
STATUS: Final = "kvpool-status"
"""Every status."""
ROUTING: Final = "kvpool-routing"
"""What the router outputs write; labels on pods under this with a digest of the output behind it."""
FLEET: Final = "kvpool-fleet"
"""The CA Secret and the trust bundle."""
